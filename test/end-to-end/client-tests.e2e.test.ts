import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { expect, it } from '@jest/globals';
import { devDependencies } from '../../package.json';
import { Program, mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { artifactPath, nodePath, NPM_INSTALL, readPageExamples } from './end-to-end-environment';

const VITEST = 'vitest@5.1.2';
const JEST = (['jest', '@jest/globals', '@swc/core', '@swc/jest'] as const).map(
  (name) => `${name}@${devDependencies[name]}`,
);

const cwd = temporaryFolder();

it('the tests of the client’s README run with Jest and with Vitest, next to the package from its archive', async () => {
  const [, , jestTest = '', vitestTest = ''] = readPageExamples('docs/client.md');
  const [jestConfig = ''] = readPageExamples('docs/client.md', 'js');
  const files = {
    'package.json': '{ "private": true }',
    'jest.config.mjs': jestConfig,
    'jest.test.ts': jestTest,
    'vitest.test.ts': vitestTest,
  };
  for (const [file, text] of Object.entries(files)) await writeFile(path.join(cwd, file), text);
  await mustRun('npm', [...NPM_INSTALL, artifactPath('client'), ...JEST, VITEST], { cwd });
  const env = { ...process.env, PATH: `${path.dirname(nodePath('22.23.5'))}:${process.env.PATH ?? ''}` };
  const runTests = async (...command: string[]) => {
    const { code, stdout, stderr } = await new Program('npx', ['--no', '--', ...command], {
      cwd,
      env,
    }).waitForEnd();
    return { code, output: stripVTControlCharacters(stdout + stderr) };
  };
  expect(await runTests('jest', 'jest.test.ts')).toMatchObject({
    code: 0,
    output: expect.stringMatching(/Tests: +1 passed, 1 total/),
  });
  expect(await runTests('vitest', 'run', 'vitest.test.ts')).toMatchObject({
    code: 0,
    output: expect.stringMatching(/Tests +1 passed \(1\)/),
  });
});
