#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { runCli } from './cli/program';
import { quoteForShell } from './cli/session';

// The file is one folder up from src and from dist alike.
const { version, scripts } = JSON.parse(readFileSync(path.join(__dirname, '..', 'package.json'), 'utf8')) as {
  version: string;
  scripts?: Readonly<Record<string, string>>;
};

// gRPC makes Node warn of TLS to an IP address (DEP0123), about which nobody who runs this can do anything.
process.noDeprecation = true;

let hasWriteError = false;
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // A reader such as `head`, or a closed terminal, may end the output early. That is not an error; a full disk is one.
    if (error.code === 'EPIPE' || error.code === 'EIO') return;
    if (!hasWriteError) process.stderr.write(`The results can't be written (${error.message}).\n`);
    hasWriteError = true;
  });
}

const [, script = '', ...args] = process.argv;
const { env, stdin, stdout, stderr } = process;
let commandPrefix = `node ${quoteForShell(script)}`;
if (path.basename(script) === 'agent-follow-up') commandPrefix = 'agent-follow-up';
// The worker's artefact has no scripts.
else if (scripts?.starter !== undefined) commandPrefix = 'npm run starter --';

void runCli({ args, env, stdin, stdout, stderr, commandPrefix: commandPrefix, version }).then((code) => {
  // A wait that was left is still under way; what was written so far is to reach its reader before we go.
  stderr.write('', () => {
    stdout.write('', () => setImmediate(() => process.exit(hasWriteError ? 1 : code)));
  });
});
