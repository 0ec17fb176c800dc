import { readFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import { eventually } from '../../tools/lib/eventually';
import { Program } from '../harness/program';
import { ROOT } from '../harness/worker-process';

/** Starts a command that starts another, and prints its process id, as the command does that of the other. */
const PARENT = `
const options = { env: process.env, graceMs: 2_000 };
require('./tools/lib/tether').spawnTethered('sh', ['-c', 'sleep 60 & echo $!; wait'], options)
  .then(({ pid }) => console.log(pid));
`;

it('a tethered command ends within its grace when its parent is killed with SIGKILL, and takes with it what it has started', async () => {
  const parent = new Program(process.execPath, ['--import', 'tsx', '-e', PARENT], { cwd: ROOT });
  const [, ...pids] = await parent.says(/^(\d+)\n(\d+)\n/);
  parent.signal('SIGKILL');
  expect(pids).toHaveLength(2);
  // A zombie has ended; some containers have an init process that never collects it.
  const stat = (pid: string) => readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z ');
  for (const pid of pids)
    await eventually(`process ${pid} has ended`, async () => (await stat(pid)).includes(') Z '));
});
