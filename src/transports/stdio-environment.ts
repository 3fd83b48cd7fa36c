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
 * win. Windows names are one whatever their case.
 */
export const childEnvironment = (
  own: Readonly<Record<string, string>> | undefined,
  host: Environment,
  windows: boolean,
): Record<string, string> => {
  const same = (name: string): string => (windows ? name.toUpperCase() : name);
  const allowed = new Set(windows ? inheritedOnWindows : inheritedOnPosix);
  const taken = new Set(Object.keys(own ?? {}).map(same));
  const inherited = Object.entries(host).filter(
    (entry): entry is [string, string] =>
      entry[1] !== undefined && allowed.has(same(entry[0])) && !taken.has(same(entry[0])),
  );
  return { ...Object.fromEntries(inherited), ...own };
};
