/** The transports that fault runs know. */
import { httpFaults, sseFaults } from "./http-world.ts";
import { stdioFaults } from "./stdio-world.ts";
import type { FaultTransport } from "./world.ts";

export const faultTransports: ReadonlyArray<FaultTransport> = [stdioFaults, httpFaults, sseFaults];
