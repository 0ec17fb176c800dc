import { expect, it } from '@jest/globals';
import path from 'node:path';
import { writeFileSync } from 'node:fs';
import { engines } from '../package.json';
import { Program } from './harness/program';
import { temporaryFolder } from './harness/temporary-folder';
import { ROOT } from './harness/worker-process';

const folder = temporaryFolder();

/** Starts a program with `--help` while `process.versions` has another version of Node. */
async function startWith(node: string, program: string) {
  const module = path.join(folder, `${node}.cjs`);
  writeFileSync(
    module,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${node}' } });`,
  );
  const args = ['--require', module, path.join(ROOT, 'dist', program), '--help'];
  return new Program(process.execPath, args).waitForEnd();
}

it.each(['worker.js', 'starter.js'])(
  'with a version of Node that is too old, %s names both versions before it loads its dependencies, and exits with code 2',
  async (program) => {
    for (const version of ['18.20.8', '20.18.3'])
      expect(await startWith(version, program)).toMatchObject({
        code: 2,
        stdout: '',
        stderr: `Node ${version} is too old; install Node ${engines.node.replace('>=', '')} or newer, and start the program with it.\n`,
      });
    expect(await startWith('20.19.0', program)).toMatchObject({ code: 0, stderr: '' });
  },
);
