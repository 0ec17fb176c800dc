import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { freePort } from '../../tools/lib/free-port';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';
import { ContainerDeployments } from './deployments/container-deployments';
import { ContainerEngine } from './deployments/container-engine';
import { DOCKER_COMPOSE, installDebian, requirePrograms } from './deployments/debian';
import { expectDeploymentSteps } from './deployments/deployment-steps';
import { installUnit } from './deployments/systemd-deployment';
import { SystemdMachine } from './deployments/systemd-machine';
import { type EndToEndEnvironment, nodePath, openEndToEndEnvironment } from './end-to-end-environment';

// Jest calls these functions in this order, so the folder is removed last.
afterAll(async () => {
  await engine.close().finally(() => environment.close());
});
const folder = temporaryFolder();
const newFolder = (name: string): string => {
  const created = path.join(folder, name);
  mkdirSync(created);
  return created;
};

let environment: EndToEndEnvironment;
let engine: ContainerEngine;
let containers: ContainerDeployments;

beforeAll(async () => {
  await requirePrograms();
  environment = await openEndToEndEnvironment();
  const [healthPort, metricsPort] = await Promise.all([freePort(), freePort()]);
  engine = await ContainerEngine.open({
    folder: newFolder('engine'),
    healthPort,
    metricsPort,
    temporalAddress: environment.env.TEMPORAL_ADDRESS ?? '',
  });
  containers = new ContainerDeployments(engine, environment, newFolder('host'), healthPort);
});

it.each([
  ['247', '20.19.0', 'bullseye'],
  ['257', '26.12.1', 'trixie'],
] as const)(
  'under systemd %s and Node %s, the worker of docs/deployment.md returns a prLink, uses a rotated key, drains, and starts again after a kill',
  async (version, node, release) => {
    const machine = await SystemdMachine.boot(await installDebian(release), newFolder(release));
    try {
      expect(await machine.run('systemctl --version')).toContain(`systemd ${version} `);
      const ports = [await freePort(), await freePort()] as const;
      await expectDeploymentSteps(
        await installUnit(machine, environment, nodePath(node), ports),
        environment,
      );
    } finally {
      await machine.close();
    }
  },
);

describe('the image', () => {
  beforeAll(async () => {
    await engine.importBaseImage(
      path.join(ROOT, 'deploy/Dockerfile'),
      await installDebian('trixie'),
      nodePath('26.12.1'),
    );
    await containers.install();
  });

  it('in a read-only container without capabilities, the worker of docs/deployment.md returns a prLink, uses a rotated key, drains, and starts again after a kill', async () => {
    await expectDeploymentSteps(containers.docker(), environment);
    await engine.run('docker rm --force agent-follow-up-worker');
  });

  it('with deploy/compose.yaml and Docker Compose, the worker becomes healthy, returns a prLink, uses a rotated key, drains, and starts again after a kill', async () => {
    await engine.enableCompose(path.join(await installDebian('trixie'), DOCKER_COMPOSE));
    engine.startHealthChecks('agent-follow-up-worker-1');
    await expectDeploymentSteps(containers.compose(), environment);
  });
});
