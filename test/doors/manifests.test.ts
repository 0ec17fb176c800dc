import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { parse, parseAllDocuments } from 'yaml';
import { DEFAULT_TASK_QUEUES } from '../../src/core/names';
import { loadConfig } from '../../src/worker/config';
import { shutdownLimitMs } from '../../src/worker/plugin';
import { formatListenAddress, VARIABLES } from '../../src/worker/variables';
import { selfSignedCertificate } from '../agent-api/self-signed-certificate';
import { temporaryFolder } from '../harness/temporary-folder';
import { ROOT } from '../harness/worker-process';

const DEPLOY = path.join(ROOT, 'deploy');
/** `AGENT_API_TIMEOUT` where nobody sets it. */
const DEFAULT_TIMEOUT_MS = 30_000;
const read = (file: string) => readFileSync(path.join(DEPLOY, file), 'utf8');

type Labels = Readonly<Record<string, string>>;
interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}
interface Container {
  readonly env: readonly Variable[];
  readonly envFrom: readonly { readonly configMapRef: { readonly name: string } }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
}
interface Pod {
  readonly metadata: { readonly labels: Labels };
  readonly spec: {
    readonly containers: readonly [Container];
    readonly serviceAccountName: string;
    readonly topologySpreadConstraints: readonly {
      readonly labelSelector: { readonly matchLabels: Labels };
    }[];
  };
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly template: Pod;
    readonly selector: { readonly matchLabels: Labels };
    readonly podSelector: { readonly matchLabels: Labels };
    readonly ingress: readonly { readonly ports: readonly { readonly port: string }[] }[];
    readonly podMetricsEndpoints: readonly { readonly port: string; readonly honorLabels: boolean }[];
    readonly unhealthyPodEvictionPolicy: string;
    readonly hostPort: string;
    readonly rollout: Readonly<Record<string, unknown>>;
    readonly workerOptions: {
      readonly connectionRef: { readonly name: string };
      readonly temporalNamespace: string;
    };
    readonly scaleTargetRef: { readonly name: string };
    readonly triggers: readonly { readonly metadata: Readonly<Record<string, string>> }[];
  };
}

/** The manifest of a kind. @throws Error where a file is no YAML, or has none */
function manifest(file: string, kind: string): Manifest {
  const documents = parseAllDocuments(read(`kubernetes/${file}.yaml`), { strict: true });
  const found = documents.map((document) => document.toJS() as Manifest).find((each) => each.kind === kind);
  const [error] = documents.flatMap(({ errors }) => errors);
  if (error !== undefined) throw error;
  if (found === undefined) throw new Error(`${file}.yaml has no ${kind}`);
  return found;
}

const settings = manifest('base', 'ConfigMap');
const deployment = manifest('deployment', 'Deployment');
const versioned = manifest('worker-controller', 'WorkerDeployment');
const connection = manifest('worker-controller', 'Connection');

const { cert, key } = selfSignedCertificate();
const API_KEY = { temporal: { 'api-key': 'a-key-of-temporal' } };
const MUTUAL_TLS = { 'temporal-tls': { 'tls.crt': cert, 'tls.key': key, 'ca.crt': cert } };

const folder = temporaryFolder();

type Secrets = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** The environment that Kubernetes makes for the worker; a secret that is not there sets nothing. */
function environmentOf({ spec }: Pod, secrets: Secrets, injected: Record<string, string> = {}) {
  const [{ env, envFrom }] = spec.containers;
  expect(envFrom).toEqual([{ configMapRef: { name: settings.metadata.name } }]);
  const keyFile = path.join(folder, 'key');
  writeFileSync(keyFile, 'an-admin-key-of-the-service');
  const own = env.map(({ name, value, valueFrom: from }) => [
    name,
    from === undefined ? value : secrets[from.secretKeyRef.name]?.[from.secretKeyRef.key],
  ]);
  const all = { ...settings.data, ...(Object.fromEntries(own) as Record<string, string>), ...injected };
  return { ...all, AGENT_API_KEY_FILE: keyFile };
}

/** What the Temporal Worker Controller adds to each container (1.8, `ApplyControllerPodSpecModifications`). */
const INJECTED = {
  TEMPORAL_ADDRESS: connection.spec.hostPort,
  TEMPORAL_NAMESPACE: versioned.spec.workerOptions.temporalNamespace,
  TEMPORAL_DEPLOYMENT_NAME: `agents/${versioned.metadata.name}`,
  TEMPORAL_WORKER_BUILD_ID: 'agent-follow-up-worker-0.3.0-1a2b',
};

describe('the environment of the pods', () => {
  it.each([
    ['without credentials', {}, { tls: undefined, apiKey: undefined }],
    ['with an API key', API_KEY, { tls: true, apiKey: 'a-key-of-temporal' }],
    ['with mutual TLS', MUTUAL_TLS, { tls: { clientCertPair: {}, serverRootCACertificate: {} } }],
  ])('is one with which the worker starts: %s', async (_, secrets: Secrets, temporal) => {
    const { config } = await loadConfig(environmentOf(deployment.spec.template, secrets));
    expect(config.temporal).toMatchObject({
      address: settings.data?.TEMPORAL_ADDRESS,
      connection: temporal,
    });
    expect(config.deploymentVersion).toBeUndefined();
  });

  it('is one with which the worker runs as a version where the Worker Controller adds what it adds', async () => {
    const { config } = await loadConfig(environmentOf(versioned.spec.template, MUTUAL_TLS, INJECTED));
    expect(config.deploymentVersion).toEqual({
      deploymentName: INJECTED.TEMPORAL_DEPLOYMENT_NAME,
      buildId: INJECTED.TEMPORAL_WORKER_BUILD_ID,
    });
    const given = versioned.spec.template.spec.containers[0].env.map(({ name }) => name);
    expect(given.filter((name) => name in INJECTED || /CLIENT|API_KEY$/.test(name))).toEqual([]);
  });

  it('names the ports at which the worker listens', async () => {
    const { config } = await loadConfig(environmentOf(deployment.spec.template, {}));
    const { ports } = deployment.spec.template.spec.containers[0];
    const at = Object.fromEntries(ports.map(({ name, containerPort }) => [name, `0.0.0.0:${containerPort}`]));
    const listens = ({ health, metrics }: typeof config) =>
      [health, metrics].map((each) => (each === 'off' ? each : formatListenAddress(each)));
    expect(listens(config)).toEqual([at.health, at.metrics]);
  });
});

describe('the manifests', () => {
  const { template } = deployment.spec;
  const { labels } = template.metadata;

  it('run the same pod with the Worker Controller as with a Deployment, but for the credentials', () => {
    const without = ({ metadata, spec }: Pod) => {
      const [{ env, ...container }] = spec.containers;
      const own = env.filter(({ name }) => !name.startsWith('TEMPORAL_'));
      return { metadata, spec: { ...spec, containers: [{ ...container, env: own }] } };
    };
    expect(without(versioned.spec.template)).toEqual(without(template));
  });

  it('all mean these pods', () => {
    const { topologySpreadConstraints: spread, serviceAccountName } = template.spec;
    expect(deployment.spec.selector.matchLabels).toEqual(labels);
    expect(manifest('base', 'PodDisruptionBudget').spec.selector.matchLabels).toEqual(labels);
    expect(manifest('base', 'NetworkPolicy').spec.podSelector.matchLabels).toEqual(labels);
    expect(manifest('pod-monitor', 'PodMonitor').spec.selector.matchLabels).toEqual(labels);
    expect(spread.map(({ labelSelector }) => labelSelector.matchLabels)).toEqual([labels, labels]);
    expect(manifest('base', 'ServiceAccount').metadata.name).toBe(serviceAccountName);
    expect(versioned.spec.workerOptions.connectionRef.name).toBe(connection.metadata.name);
  });

  it('let Prometheus in at the port that it scrapes', () => {
    const [{ ports: allowed } = { ports: [] }] = manifest('base', 'NetworkPolicy').spec.ingress;
    const [scraped] = manifest('pod-monitor', 'PodMonitor').spec.podMetricsEndpoints;
    const { ports } = template.spec.containers[0];
    expect(allowed.map(({ port }) => port)).toEqual([scraped?.port]);
    expect(ports.map(({ name }) => name)).toContain(scraped?.port);
  });

  it('let a node be drained while Temporal is down and no worker is ready', () => {
    expect(manifest('base', 'PodDisruptionBudget').spec.unhealthyPodEvictionPolicy).toBe('AlwaysAllow');
  });

  it('leave the label `namespace`, by which the alerts are, to Temporal', () => {
    const [scraped] = manifest('pod-monitor', 'PodMonitor').spec.podMetricsEndpoints;
    expect(scraped?.honorLabels).toBe(true);
  });

  it.each([
    [200, 0],
    [503, 1],
  ])(
    'check the health of the worker in Compose: where /readyz answers %s, the check ends with %s',
    async (status, code) => {
      const compose = parse(read('compose.yaml')) as {
        services: { worker: { healthcheck: { test: [string, string, ...string[]] } } };
      };
      const [, program, ...args] = compose.services.worker.healthcheck.test;
      const server = createServer(({ url }, response) =>
        response.writeHead(url === '/readyz' ? status : 404).end(),
      );
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const { port } = server.address() as AddressInfo;
      const check = spawn(
        program,
        args.map((arg) => arg.replace(':9465', `:${port}`)),
      );
      expect((await once(check, 'exit'))[0]).toBe(code);
      server.close();
    },
  );

  it('roll a version out without a gate, whose workflow would wait on queues that have activities only', () => {
    expect(Object.keys(versioned.spec.rollout).sort()).toEqual(['steps', 'strategy']);
  });

  it('scale by the workflow queue alone, because limits fill the others', () => {
    const { scaleTargetRef, triggers } = manifest('keda', 'ScaledObject').spec;
    expect(scaleTargetRef.name).toBe(deployment.metadata.name);
    expect(triggers.map(({ metadata }) => metadata.taskQueue)).toEqual([DEFAULT_TASK_QUEUES.followUp]);
  });

  it.each([
    ['kubernetes/deployment.yaml', /terminationGracePeriodSeconds: (\d+)/],
    ['kubernetes/worker-controller.yaml', /terminationGracePeriodSeconds: (\d+)/],
    ['compose.yaml', /stop_grace_period: (\d+)s/],
    ['agent-follow-up-worker.service', /TimeoutStopSec=(\d+)/],
  ])('give a drain its whole time in %s', (file, pattern) => {
    const seconds = Number(pattern.exec(read(file))?.[1]);
    expect(seconds * 1_000).toBeGreaterThan(shutdownLimitMs(DEFAULT_TIMEOUT_MS));
  });

  it.each([
    'Dockerfile',
    'compose.yaml',
    'agent-follow-up-worker.service',
    ...['base', 'deployment', 'worker-controller'].map((name) => `kubernetes/${name}.yaml`),
  ])('set only variables that there are in %s', (file) => {
    const named = read(file).match(/\b(?:AGENT_API|FOLLOW_UP)_[A-Z_]+\b/g) ?? [];
    expect(VARIABLES).toEqual(expect.arrayContaining([...new Set(named)]));
  });
});
