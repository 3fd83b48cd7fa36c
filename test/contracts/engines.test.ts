import { legacyEngine } from "../../src/plugins/engines/legacy.ts";
import { modernEngine } from "../../src/plugins/engines/modern.ts";
import { engineContract } from "../../src/testing.ts";
import { checkSuite } from "./check-suite.ts";

checkSuite("legacy engine", engineContract({ engine: legacyEngine }));
checkSuite("modern engine", engineContract({ engine: modernEngine }));
