#!/usr/bin/env node
// This file is the entry point of the CLI `agent-follow-up`. In the repository, `npm run starter` runs the CLI.
import './node-version';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { runCli } from './cli/program';
import { quoteForShell } from './cli/session';

// The path is the same from src and from dist.
const { version, scripts } = JSON.parse(readFileSync(path.join(__dirname, '..', 'package.json'), 'utf8')) as {
  version: string;
  scripts?: Readonly<Record<string, string>>;
};

// Deprecation warnings are off. gRPC causes one for TLS to an IP address (DEP0123), and a user of the CLI can't fix the cause.
process.noDeprecation = true;

let hasWriteError = false;
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // A reader such as `head`, or a closed terminal, may end the output early, which is not an error. A full disk is an error.
    if (error.code === 'EPIPE' || error.code === 'EIO') return;
    if (!hasWriteError) process.stderr.write(`The output can't be written (${error.message}).\n`);
    hasWriteError = true;
  });
}

const [, script = '', ...args] = process.argv;
const { env, stdin, stdout, stderr } = process;
let commandPrefix = `node ${quoteForShell(script)}`;
if (path.basename(script) === 'agent-follow-up') commandPrefix = 'agent-follow-up';
// The worker's archive has no npm scripts.
else if (scripts?.starter !== undefined) commandPrefix = 'npm run starter --';

void runCli({ args, env, stdin, stdout, stderr, commandPrefix, version }).then((code) => {
  // The process exits although a wait may still be in progress. Before that, the output must reach its reader.
  stderr.write('', () => {
    stdout.write('', () => setImmediate(() => process.exit(hasWriteError ? 1 : code)));
  });
});
