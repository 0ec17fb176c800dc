/**
 * A parent for tests of what happens to tethered children: it starts the command of its arguments, prints the command's
 * process id as its first line, passes its output on, and stops it in good order on SIGINT.
 */
import { spawnTethered } from '../../dev/tether';

async function main(): Promise<void> {
  const [command = '', ...args] = process.argv.slice(2);
  const child = await spawnTethered(command, args, { env: process.env, graceMs: 2_000 });
  process.once('SIGINT', () => void child.stop().then(() => process.exit(0)));
  console.log(child.pid);
  await child.exited;
}

void main();
