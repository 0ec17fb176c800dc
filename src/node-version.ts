/**
 * Ends the program if the version of Node is too old. This module must be the first import of a program, because an older version can't
 * load the dependencies, and would print only a stack trace. The exit code 2 means that a restart does not help.
 */
const OLDEST = { major: 20, minor: 19 } as const;

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < OLDEST.major || (major === OLDEST.major && minor < OLDEST.minor)) {
  process.stderr.write(
    `Node ${process.versions.node} is too old; install Node ${OLDEST.major}.${OLDEST.minor} or newer, and start the program with it.\n`,
  );
  process.exit(2);
}
