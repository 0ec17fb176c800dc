/** Starts `GRACE_MS COMMAND …`, prints its process id, and passes its output on. */
import { spawnTethered } from '../../dev/tether';

async function main(): Promise<void> {
  const [graceMs, command = '', ...args] = process.argv.slice(2);
  const child = await spawnTethered(command, args, { env: process.env, graceMs: Number(graceMs) });
  console.log(child.pid);
  await child.exited;
}

void main();
