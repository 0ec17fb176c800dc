import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { eventually } from '../harness/eventually';
import { Program } from '../harness/program';

it('a tethered command ends within its grace when its parent is killed with SIGKILL, and takes with it what it has started', async () => {
  const script = path.resolve(__dirname, 'parent.ts');
  const command = ['2000', 'sh', '-c', 'sleep 60 & echo $!; wait'];
  const parent = new Program(process.execPath, ['--import', 'tsx', script, ...command]);
  // The command's process id by the parent, and that of its child by itself.
  const [, ...pids] = await parent.says(/^(\d+)\n(\d+)\n/);
  parent.signal('SIGKILL');
  expect(pids).toHaveLength(2);
  for (const pid of pids) await eventually(`process ${pid} has ended`, () => isGone(Number(pid)));
});

async function isGone(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return true;
  }
  // A zombie has ended; some containers have an init process that never collects it.
  return (await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')).includes(') Z ');
}
