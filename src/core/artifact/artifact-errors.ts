/** Errors of reading artifacts; part of the family of core/errors.ts. */
import { type McpErrorClass, tagged } from "../error-class.ts";

const ArtifactNotFoundBase: McpErrorClass<"ArtifactNotFound", { ref: string }> = tagged(
  "ArtifactNotFound",
  (f) => `There is no artifact '${f.ref}', or it is too old and was dropped. Call the tool that made it again.`,
);
/** No artifact has this ref now. */
export class ArtifactNotFound extends ArtifactNotFoundBase {}

const PointerUnresolvedBase: McpErrorClass<
  "PointerUnresolved",
  { ref: string; pointer: string; /** The longest part that resolves. */ at: string; reason: string }
> = tagged(
  "PointerUnresolved",
  (f) => `The pointer '${f.pointer}' leads nowhere in '${f.ref}': at '${f.at || "(root)"}' ${f.reason}.`,
);
/** A JSON Pointer (RFC 6901) is malformed or leads to nothing in the artifact. */
export class PointerUnresolved extends PointerUnresolvedBase {}
