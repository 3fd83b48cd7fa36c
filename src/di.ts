/**
 * tsyringe for hosts that like its decorators, with reflect-metadata evaluated first.
 * nucleo-mcp's own sources use no decorators.
 */
import "reflect-metadata";

export {
  container,
  inject,
  injectable,
  injectAll,
  instanceCachingFactory,
  Lifecycle,
  registry,
  scoped,
  singleton,
} from "tsyringe";
export type { DependencyContainer, InjectionToken } from "tsyringe";
