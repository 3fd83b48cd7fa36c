/** All that is fuzzed. */
import { engineTargets } from "./engines.ts";
import { httpTargets } from "./http.ts";
import { oauthTarget } from "./oauth.ts";
import { pureTargets } from "./pure.ts";
import { runtimeTargets } from "./runtime.ts";
import { servingTargets } from "./serving.ts";
import { stdioTargets } from "./stdio.ts";
import type { Target } from "./target.ts";
import { websocketTarget } from "./websocket.ts";

export const targets: ReadonlyArray<Target> = [
  ...engineTargets,
  ...pureTargets,
  ...httpTargets,
  websocketTarget,
  ...stdioTargets,
  ...runtimeTargets,
  ...servingTargets,
  oauthTarget,
];
