import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { NativeConnection } from '@temporalio/worker';
import { connectToTemporal, type SdkRuntime } from '../../src/worker/connection';
import { loadTemporalConfig } from '../../src/temporal/connection-config';
import { Environment } from '../harness/environment';
import { taskQueueVariables } from '../harness/follow-up-under-test';
import { ProcessEnvironment } from '../harness/process-environment';
import { Program } from '../harness/program';
import { temporal } from '../harness/temporal';
import { type Rejection, TemporalGate } from '../harness/temporal-gate';

const PAGE = readFileSync(path.join(__dirname, '../../docs/temporal-server.md'), 'utf8');

/** The kinds of rejections, as the columns of the table in docs/temporal-server.md name them. */
const REJECTIONS: readonly (readonly [string, Rejection])[] = [
  ['`PERMISSION_DENIED`', { grpcStatus: 7 }],
  ['`UNAUTHENTICATED`', { grpcStatus: 16 }],
  ['`UNIMPLEMENTED`', { grpcStatus: 12 }],
  ['`UNAVAILABLE`', { grpcStatus: 14 }],
  ['`NOT_FOUND`', { grpcStatus: 5 }],
  ['plain HTTP 403', { httpStatus: 403 }],
  ['plain HTTP 404', { httpStatus: 404 }],
];

/** The calls that a gateway may reject, as the rows of the table in docs/temporal-server.md name them. */
const OPTIONAL_CALLS: readonly (readonly [string, RegExp])[] = [
  ['the whole `OperatorService`', /OperatorService\//],
  ['`ListWorkflowExecutions`, `CountWorkflowExecutions`', /\/(List|Count)WorkflowExecutions$/],
  ['`DescribeTaskQueue`', /\/DescribeTaskQueue$/],
  ['`PauseActivity`', /\/PauseActivity$/],
  ['`GetWorkflowExecutionHistoryReverse`', /\/GetWorkflowExecutionHistoryReverse$/],
  [
    '`RecordWorkerHeartbeat`, `PollNexusTaskQueue`, `ShutdownWorker`, `GetClusterInfo`, and the calls whose names contain `Workers`, `WorkerDeployment`, `WorkerVersioning`, `WorkerBuildId` or `TaskQueueConfig`',
    /\/(RecordWorkerHeartbeat|PollNexusTaskQueue|ShutdownWorker|GetClusterInfo|\w*(Worker(s|Deployment|Versioning|BuildId)|TaskQueueConfig)\w*)$/,
  ],
];

/** Every call of the table at once. */
const ALL_OPTIONAL_CALLS = new RegExp(OPTIONAL_CALLS.map(([, { source }]) => source).join('|'));

async function withGate(
  rejections: readonly [RegExp, Rejection][],
  test: (gate: TemporalGate) => Promise<void>,
) {
  const gate = await TemporalGate.open(temporal().address);
  for (const each of rejections) gate.reject(...each);
  await test(gate).finally(() => gate.close());
}

/** Connects as a worker process does. @returns the log, and the connection or the error with which the worker ends */
async function connectWorker({ address }: TemporalGate, { waits = Infinity } = {}) {
  const log: string[] = [];
  const stop = new AbortController();
  const add = (line: string): void => {
    log.push(line);
    if (log.filter((each) => each.startsWith('waiting')).length >= waits) stop.abort(new Error('stopped'));
  };
  const logger = { info: add, warn: add } as unknown as Parameters<typeof connectToTemporal>[4];
  const runtime = { connect: (options) => NativeConnection.connect(options) } as SdkRuntime;
  const config = loadTemporalConfig({ TEMPORAL_ADDRESS: address });
  const end = await connectToTemporal(config, runtime, stop.signal, () => undefined, logger).then(
    (connection) => connection.close(),
    (error: unknown) => String(error),
  );
  return { log: log.join('\n'), end };
}

/** Starts workers with the plugin, and runs a follow-up on them. @returns its link */
async function prLinkWithPlugin(address: string): Promise<string | null> {
  const environment = await Environment.open({ address, skipsTime: true });
  const result = environment.follow().then((following) => following.result());
  return (await result.finally(() => environment.close())).prLink;
}

describe('behind a gateway that rejects calls which are not required', () => {
  const cells = OPTIONAL_CALLS.flatMap(([calls, pattern]) =>
    REJECTIONS.map(([name, rejection]) => [calls, name, pattern, rejection] as const),
  );
  let gate: TemporalGate;
  let environment: Environment;
  beforeAll(async () => {
    gate = await TemporalGate.open(temporal().address);
    environment = await Environment.open({ address: gate.address, skipsTime: true });
  });
  afterAll(async () => {
    await environment.close();
    await gate.close();
  });

  // Proves T6.
  it.each(cells)(
    '%s with %s: a worker can start, and a follow-up runs to its prLink',
    async (_calls, _name, pattern, rejection) => {
      const endRejection = gate.reject(pattern, rejection);
      try {
        expect((await connectWorker(gate)).end).toBeUndefined();
        const following = await environment.follow();
        const handle = environment.followUps.getHandle(following.handle.workflowId);
        expect(await handle.describe()).toMatchObject({ workflowTaskFailure: null });
        const { status, prLink } = await following.result();
        expect({ status, prLink }).toEqual({
          status: 'completed',
          prLink: expect.stringContaining('/pull/'),
        });
      } finally {
        endRejection();
      }
    },
  );

  // Proves T6.
  it.each(REJECTIONS)(
    'all of them at once with %s: a worker process starts, and the CLI sends a message and prints the prLink',
    async (_name, rejection) => {
      await withGate([[ALL_OPTIONAL_CALLS, rejection]], async ({ address, rejectedMethods }) => {
        await ProcessEnvironment.with({}, async (environment) => {
          const worker = await environment.startWorker({ TEMPORAL_ADDRESS: address });
          expect(await worker.waitForReadyz(200)).toEqual([]);
          const { msg } = await worker.waitForLog(
            /^the worker starts without a check of its search attributes/,
          );
          expect(msg).toMatch(
            /rejects the calls ListSearchAttributes \(.+\) and ListWorkflowExecutions \(.+\)/,
          );
          const env = { TEMPORAL_ADDRESS: address, ...taskQueueVariables(environment.taskQueues) };
          const run = (...args: string[]) => Program.startCli(args, env).waitForEnd();
          const { projectId, jobId } = environment.addJob();
          const times = ['--max-staleness', '1s', '--polling-initial', '200ms', '--polling-maximum', '1s'];
          const target = ['--project', projectId, '--job', jobId, '--prompt', 'Fix the links.'];
          const sent = await run('send', ...target, ...times, '--json');
          expect(sent).toMatchObject({ code: 0, stdout: expect.stringContaining('/pull/') });
        });
        expect([...rejectedMethods]).toEqual(
          expect.arrayContaining(['ListSearchAttributes', 'ListWorkflowExecutions']),
        );
      });
    },
  );

  // Proves T6.
  it.concurrent.each(REJECTIONS)(
    'all of them at once with %s: workers with the plugin start, and a follow-up runs to its prLink',
    async (_name, rejection) => {
      await withGate([[ALL_OPTIONAL_CALLS, rejection]], async ({ address }) => {
        expect(await prLinkWithPlugin(address)).toContain('/pull/');
      });
    },
  );

  it.concurrent.each(REJECTIONS)(
    'the operator service with %s: the CLI’s `setup` succeeds, and states that all search attributes exist',
    async (_name, rejection) => {
      await withGate([[/OperatorService\//, rejection]], async ({ address }) => {
        const { code, stdout } = await Program.startCli(['setup'], {
          TEMPORAL_ADDRESS: address,
        }).waitForEnd();
        expect({ code, stdout }).toMatchObject({
          code: 0,
          stdout: expect.stringContaining('all search attributes exist'),
        });
      });
    },
  );

  it.concurrent.each(REJECTIONS)(
    'all of them at once with %s: the CLI’s `setup` fails, because it is unknown whether the search attributes exist',
    async (_name, rejection) => {
      await withGate([[ALL_OPTIONAL_CALLS, rejection]], async ({ address }) => {
        const setUp = await Program.startCli(['setup'], { TEMPORAL_ADDRESS: address }).waitForEnd();
        expect(setUp).toMatchObject({ code: 1, stderr: expect.stringContaining('It is unknown whether') });
      });
    },
  );

  it('the page has each of these calls in both tables, and each kind of rejection', () => {
    const runs = `| ${REJECTIONS.map(() => 'runs').join(' | ')} |`;
    expect(OPTIONAL_CALLS.filter(([calls]) => !PAGE.includes(`| ${calls} ${runs}`))).toEqual([]);
    expect(OPTIONAL_CALLS.filter(([calls]) => PAGE.split(`| ${calls} |`).length !== 3)).toEqual([]);
    expect(PAGE).toContain(`| rejected calls | ${REJECTIONS.map(([name]) => name).join(' | ')} |`);
  });
});

describe('behind a gateway that rejects a call which the SDK’s worker requires', () => {
  const cells = ['GetSystemInfo', 'DescribeNamespace'].flatMap((call) => {
    const results = new RegExp(`^\\| \`${call}\` \\|(.*)\\|$`, 'm').exec(PAGE)?.[1]?.split('|') ?? [];
    return REJECTIONS.map(
      ([name, rejection], index) => [call, name, results[index]?.trim(), rejection] as const,
    );
  });
  it.concurrent.each(cells)(
    '%s with %s: the worker %s, as the page states',
    async (call, _name, result, rejection) => {
      await withGate([[new RegExp(`/${call}$`), rejection]], async (gate) => {
        const { end, log } = await connectWorker(gate, { waits: 1 });
        const isWaiting = log.includes('waiting for the Temporal server');
        expect(isWaiting ? 'waits' : end === undefined ? 'runs' : 'exits').toBe(result);
        const reason = call === 'DescribeNamespace' ? 'the call DescribeNamespace fails: ' : '';
        expect(log).toContain(isWaiting ? reason : '');
        expect(String(end)).toMatch(result === 'exits' ? /denies access|rejects the credentials/ : '');
      });
    },
  );

  it.concurrent.each(REJECTIONS.filter(([name]) => name.includes('UNIMPLEMENTED')))(
    'the SDK accepts DescribeNamespace with %s, so a follow-up runs to its prLink',
    async (_name, rejection) => {
      await withGate([[/DescribeNamespace$/, rejection]], async (gate) => {
        expect((await connectWorker(gate)).end).toBeUndefined();
        expect(await prLinkWithPlugin(gate.address)).toContain('/pull/');
      });
    },
  );

  it('GetSystemInfo and DescribeNamespace with a plain HTTP 404: the worker waits, because the server is not a Temporal server', async () => {
    await withGate([[/(GetSystemInfo|DescribeNamespace)$/, { httpStatus: 404 }]], async (gate) => {
      const { log } = await connectWorker(gate, { waits: 1 });
      expect(log).toMatch(/waiting for the Temporal server /);
    });
  });
});
