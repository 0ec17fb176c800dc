/** Starts `GRACE_MS COMMAND …`, prints its process id, passes its output on, and stops it in good order on SIGINT. */
import { spawnTethered } from '../../dev/tether';

async function main(): Promise<void> {
  const [graceMs, command = '', ...args] = process.argv.slice(2);
  const child = await spawnTethered(command, args, { env: process.env, graceMs: Number(graceMs) });
  process.once('SIGINT', () => void child.stop().then(() => process.exit(0)));
  console.log(child.pid);
  await child.exited;
}

void main();
