import { setMaxListeners } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { seededRandom } from '../../sandbox/random';
import { eventually } from '../harness/eventually';
import { listed } from '../harness/listed';
import { ProcessEnvironment } from '../harness/process-environment';
import { RestartableServer } from '../harness/restartable-server';
import { liesOfBatch, meddle, soakBatch } from '../harness/soak/batches';
import { decideAll, Part } from '../harness/soak/follow-ups';
import { Machines } from '../harness/soak/machines';
import { lies } from '../harness/soak/oracle';
import { FAULTS, HTTP_TIMEOUT } from '../harness/soak/service';
import { ROOT } from '../harness/worker-process';

/** What it draws is always the same, unless this says another. The order in time is the machine's. */
const SEED = Number(process.env.FOLLOW_UP_SOAK_SEED ?? 1);

const FOLLOW_UPS = 60;

/** Machines and people are left alone from here on, whatever still runs; then the deadline ends every follow-up. */
const CHAOS_MS = 30_000;

/** The chaos, a reset at its end, the batch run to its end a few times, and the start of a server and the first workers. */
const LIMIT_MS = 600_000;

// Proves W9, B1.
it(
  'sixty follow-ups and a batch, through what machines, services and people do: each ends, nothing is sent that was not allowed, no receipt lies, and no worker ends by itself',
  async () => {
    const options = {
      sandbox: { seed: SEED, messagesPerHour: null },
      env: { AGENT_API_TIMEOUT: HTTP_TIMEOUT },
    };
    await RestartableServer.with((server) =>
      ProcessEnvironment.with({ ...options, address: server.address }, (environment) =>
        expectNoLie(environment, server),
      ),
    );
  },
  LIMIT_MS,
);

async function expectNoLie(environment: ProcessEnvironment, server: RestartableServer): Promise<void> {
  const { sandbox } = environment;
  const random = seededRandom(SEED);
  const parts = Array.from({ length: FOLLOW_UPS }, (_, index) => new Part(environment, index, random));
  const batch = soakBatch(environment, random);
  for (const fault of FAULTS) sandbox.setFault(fault);
  const over = new AbortController();
  const chaosOver = AbortSignal.timeout(CHAOS_MS);
  // Everybody waits with it.
  setMaxListeners(0, chaosOver);
  const machines = new Machines(environment, server, random);
  const running = machines.run(chaosOver);
  const deciding = decideAll(parts, environment, over.signal);
  const meddling = meddle(batch, seededRandom(SEED + 1), chaosOver);
  await Promise.all(parts.map((part) => part.play(chaosOver)));
  const done = await meddling;
  await running;
  const found = [...parts.flatMap((part) => lies(part, sandbox)), ...(await liesOfBatch(batch))];
  over.abort();
  await deciding;
  await everyWorkflowEnds(environment);
  machines.dismiss();
  const { counts, died } = machines;
  const told = { seed: SEED, counts, done, ends: parts.map(({ end: { kind } }) => kind) };
  process.stderr.write(`[soak] ${JSON.stringify(told)}\n`);
  if (found.length > 0) await keep({ ...told, found, journal: sandbox.journal.entries() });
  expect({ found, died }).toEqual({ found: [], died: [] });
  expect(counts.kill).toBeGreaterThan(0);
  const processed = parts.filter(
    ({ key }) => sandbox.journal.entries({ ...key, processed: true }).length > 0,
  );
  expect(processed.length).toBeGreaterThan(FOLLOW_UPS / 2);
}

async function everyWorkflowEnds({ client, taskQueue }: ProcessEnvironment): Promise<void> {
  // A part of the items of a batch that was never started again waits for a year.
  const query = `TaskQueue = '${taskQueue}' AND ExecutionStatus = 'Running' AND WorkflowType != 'followUpBatchItems'`;
  const until = (ids: readonly string[]) => ids.length === 0;
  await eventually('every workflow ends', () => listed(client.workflow.list({ query })), { until });
}

/** For whoever looks for the cause of a lie. */
async function keep(known: object): Promise<void> {
  const folder = path.join(ROOT, 'reports', 'soak');
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, `${SEED}.json`), JSON.stringify(known, null, 1));
}
