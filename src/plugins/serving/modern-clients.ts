/**
 * The clients of 2026-07-28 over HTTP. They have no session and no connection of their
 * own, so one is told from another by its credential and by the name and version that it
 * gives: requests that agree in these share their part of the servers' places.
 */
import { isRecord } from "../../core/artifact/json.ts";
import { every } from "./background-timer.ts";

const CLIENT_INFO = "io.modelcontextprotocol/clientInfo";

export interface ModernClient {
  /** Exchanges, streams and suspended calls. */
  active: number;
  seenAt: number;
}

export interface ModernClientsOptions {
  /** Clients remembered at once. */
  readonly max: number;
  /** A client that does nothing is forgotten after this, ms. */
  readonly presence: number;
  readonly onForgotten: (client: ModernClient) => void;
}

export interface ModernClients {
  /** Notes the beginning of something the client does; undefined when there are too many clients at work. */
  readonly enter: (request: Request, message: unknown) => ModernClient | undefined;
  readonly hold: (client: ModernClient) => void;
  readonly release: (client: ModernClient) => void;
  readonly count: () => number;
  readonly close: () => void;
}

const nameOf = (message: unknown): string => {
  const params = isRecord(message) ? message["params"] : undefined;
  const meta = isRecord(params) ? params["_meta"] : undefined;
  const info = isRecord(meta) ? meta[CLIENT_INFO] : undefined;
  return isRecord(info) ? JSON.stringify([info["name"], info["version"]]).slice(0, 500) : "";
};

export const makeModernClients = ({ max, presence, onForgotten }: ModernClientsOptions): ModernClients => {
  /** In the order they were last seen. */
  const clients = new Map<string, ModernClient>();

  const forget = (key: string, client: ModernClient): void => {
    clients.delete(key);
    onForgotten(client);
  };
  const sweep = every(Math.max(50, presence / 4), () => {
    const since = performance.now() - presence;
    for (const [key, client] of clients) if (client.active === 0 && client.seenAt < since) forget(key, client);
  });

  /** Room for one more, made by forgetting the one that was idle longest where need be. */
  const hasRoom = (): boolean => {
    if (clients.size < max) return true;
    const idle = [...clients].find(([, { active }]) => active === 0);
    if (idle) forget(...idle);
    return idle !== undefined;
  };

  const hold = (client: ModernClient): void => {
    client.active++;
    client.seenAt = performance.now();
  };

  return {
    hold,
    enter: (request, message) => {
      const key = `${request.headers.get("authorization") ?? ""}\n${nameOf(message)}`;
      const known = clients.get(key);
      if (!known && !hasRoom()) return undefined;
      const client = known ?? { active: 0, seenAt: 0 };
      clients.delete(key);
      clients.set(key, client);
      hold(client);
      return client;
    },
    release: (client) => {
      client.active--;
      client.seenAt = performance.now();
    },
    count: () => clients.size,
    close: () => {
      clearInterval(sweep);
      for (const [key, client] of clients) forget(key, client);
    },
  };
};
