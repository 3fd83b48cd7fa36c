/** Holds the secret of a client that was registered beforehand; not an option, because all users of a machine can read those. */
export const secretVariable = "NUCLEO_MCP_CLIENT_SECRET";
