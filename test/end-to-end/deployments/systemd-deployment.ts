import { artifactPath, type EndToEndEnvironment } from '../end-to-end-environment';
import { type Deployment, forJob } from './deployment-steps';
import { readPageCommands } from './page-commands';
import type { SystemdMachine } from './systemd-machine';

const UNIT = 'agent-follow-up-worker';

/** Installs the worker in a machine with the commands of docs/deployment.md, without starting the worker. */
export async function installUnit(
  machine: SystemdMachine,
  { sandbox, env }: EndToEndEnvironment,
  node: string,
  [healthPort, metricsPort]: readonly [number, number],
): Promise<Deployment> {
  // The machine has the network of this machine, on which other workers listen too.
  const ports = `FOLLOW_UP_HEALTH_ADDRESS=[::]:${healthPort}\nFOLLOW_UP_METRICS_ADDRESS=[::]:${metricsPort}`;
  const values = {
    'temporal.example:7233': env.TEMPORAL_ADDRESS ?? '',
    'https://agents.example': `${sandbox.baseUrl}\n${ports}`,
    '127.0.0.1:9465': `127.0.0.1:${healthPort}`,
  };
  const [install = '', configure = '', start = '', send = ''] = readPageCommands(
    'docs/deployment.md',
    'systemd',
    values,
  );
  const [rotate = ''] = readPageCommands('docs/operations.md', 'Rotating the key', values);
  const heading = 'Replace a worker under systemd';
  const [compareUnits = '', ...upgrades] = readPageCommands('docs/upgrading.md', heading, values);
  const writeKey = (key: string) => machine.writeFile('root/new-key', key);
  await machine.copyFile(node, 'usr/bin/node');
  await machine.copyFile(artifactPath('worker'), 'root/agent-follow-up-worker-0.tgz');
  await writeKey(sandbox.createKey());
  await machine.run(install + configure);
  return {
    start: () => machine.run(start),
    send: (job) => machine.run(forJob(send, job)),
    stop: () => machine.run(`systemctl stop ${UNIT}`),
    kill: () => machine.run(`kill -KILL $(systemctl show --property MainPID --value ${UNIT})`),
    rotateKey: async (key) => {
      await writeKey(key);
      await machine.run(rotate);
    },
    upgrades: upgrades.map((commands) => () => machine.run(compareUnits + commands)),
    healthPort,
    logs: () => machine.run(`journalctl --sync; journalctl --unit ${UNIT} --output cat --no-pager`),
  };
}
