#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ignoreClosedPipes } from './cli/render/output';
import { run } from './cli/program';

// The file is one folder up from src and from dist alike.
const { version, scripts } = JSON.parse(readFileSync(path.join(__dirname, '..', 'package.json'), 'utf8')) as {
  version: string;
  scripts?: Readonly<Record<string, string>>;
};

ignoreClosedPipes(process.stdout, process.stderr);
void run({
  args: process.argv.slice(2),
  env: process.env,
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  scriptPath: process.argv[1],
  isCheckout: scripts?.starter !== undefined,
  version,
}).then((code) => {
  // A wait that was left is still under way; what was written so far is to reach its reader before we go.
  process.stdout.write('', () => process.exit(code));
});
