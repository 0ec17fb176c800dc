/**
 * A parent for tests of what happens to what it has started: `dev-server CLI` or `command COMMAND …`. It prints the
 * process id as its first line, passes a command's output on, and stops it in good order on SIGINT.
 */
import { startDevServer } from '../../dev/dev-server';
import { spawnTethered } from '../../dev/tether';

async function main(): Promise<void> {
  const [kind = '', command = '', ...args] = process.argv.slice(2);
  const child =
    kind === 'dev-server'
      ? await startDevServer({ cli: command })
      : await spawnTethered(command, args, { env: process.env, graceMs: 2_000 });
  process.once('SIGINT', () => void child.stop().then(() => process.exit(0)));
  console.log(child.pid);
  await child.exited;
}

void main();
