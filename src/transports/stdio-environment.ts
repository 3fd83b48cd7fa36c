/** The environment of a server's process. Pure. */

type Environment = Readonly<Record<string, string | undefined>>;

/** What a server gets of the host's environment on POSIX systems. Nothing else leaks. */
export const inheritedOnPosix: ReadonlyArray<string> = ["PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "SHELL"];

/** The same on Windows: without these, most programs do not start there. */
export const inheritedOnWindows: ReadonlyArray<string> = [
  "APPDATA",
  "COMSPEC",
  "HOMEDRIVE",
  "HOMEPATH",
  "LOCALAPPDATA",
  "NUMBER_OF_PROCESSORS",
  "OS",
  "PATH",
  "PATHEXT",
  "PROCESSOR_ARCHITECTURE",
  "PROGRAMDATA",
  "PROGRAMFILES",
  "PROGRAMFILES(X86)",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "TMP",
  "USERNAME",
  "USERPROFILE",
  "WINDIR",
];

/**
 * The allow-list of the host's environment plus the endpoint's own entries, which
 * win. Windows takes names whatever their case, and so does its `process.env`.
 */
export const childEnvironment = (
  own: Readonly<Record<string, string>> | undefined,
  host: Environment,
  windows: boolean,
): Record<string, string> => {
  const taken = new Set(Object.keys(own ?? {}).map((name) => (windows ? name.toUpperCase() : name)));
  const env: Record<string, string> = {};
  for (const name of windows ? inheritedOnWindows : inheritedOnPosix) {
    const value = taken.has(name) ? undefined : host[name];
    if (value !== undefined) env[name] = value;
  }
  return Object.assign(env, own);
};
