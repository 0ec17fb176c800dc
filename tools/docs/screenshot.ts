/**
 * Takes the pictures of the Web UI in docs: `npm run screenshot`. The script starts a dev server, a sandbox agent service with
 * some faults, and a worker, and runs follow-ups and a batch. A headless Chromium takes the pictures.
 */
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { FollowUpClient } from '../../src/entries/client';
import { startDemoWorker } from '../dev/demo-worker';
import { type DevServer, startDevServer, stripTemporalEnv } from '../lib/dev-server';
import { findTemporalCli } from '../lib/temporal-cli';
import { type Sandbox, startSandbox } from '../../sandbox';
import { openBrowser, workflowPageUrl } from '../lib/browser';
import { eventually } from '../lib/eventually';

const DOCS = path.resolve(__dirname, '../../docs');

/** The agent works for some polls, so that the timeline has several kinds of polls. */
const TURN_MS = 16_000;

/** The time until a page has its final layout after its text is shown. The page of a running workflow keeps polling. */
const LAYOUT_WAIT_MS = 3_000;

const PROJECT = 'docs';
const PROMPT = 'Please fix the broken links on the start page.';

interface Stage {
  readonly followUps: FollowUpClient;
  readonly sandbox: Sandbox;
}

function printStatus(line: string): void {
  console.error(line);
}

async function main(): Promise<void> {
  const cli = await findTemporalCli({ env: process.env, report: printStatus });
  const server = await startDevServer({ cli: cli.path, webUi: true });
  try {
    await withStage(server, async (stage) => {
      await Promise.all([
        captureFollowUp(stage, server),
        captureBatch(stage, server),
        captureDecision(stage, server),
      ]);
    });
  } finally {
    await server.stop();
  }
}

async function withStage(server: DevServer, work: (stage: Stage) => Promise<void>): Promise<void> {
  const sandbox = await startSandbox({ seedJobs: false });
  const env = {
    ...stripTemporalEnv(process.env),
    TEMPORAL_ADDRESS: server.address,
  };
  const worker = await startDemoWorker(env, sandbox);
  try {
    await worker.ready();
    const connection = await Connection.connect({ address: server.address });
    const followUps = new FollowUpClient(new Client({ connection }));
    try {
      await work({ followUps, sandbox });
    } finally {
      await followUps.close();
    }
  } finally {
    await worker.stop();
    await sandbox.close();
  }
}

/** Captures a follow-up with one failed read: its input, its result and the timeline. */
async function captureFollowUp({ followUps, sandbox }: Stage, server: DevServer): Promise<void> {
  const job = { projectId: PROJECT, jobId: 'job-1042' };
  sandbox.addJob({ projectId: PROJECT, id: job.jobId, turn: { durationMs: TURN_MS } });
  // The baseline read is the first GET, and poll 1 is the second one.
  sandbox.setFault({ name: 'http-503', ...job, operation: 'get', skip: 2, times: 1 });
  const followUp = await followUps.start({
    ...job,
    prompt: PROMPT,
    requestId: 'release-7.2-links',
    polling: { initial: '3s', jitter: 0, timerPolls: 3 },
    maxStaleness: '5s',
  });
  await followUp.result();
  await takePicture(
    'web-ui',
    workflowPageUrl(server.uiUrl ?? '', followUp.workflowId, followUp.runId),
    'poll 4 and later polls',
    1_210,
  );
}

/**
 * Captures a follow-up whose message was sent during a running turn, and whose POST received 503. The delivery is then unknown, and
 * only an operator can decide.
 */
async function captureDecision({ followUps, sandbox }: Stage, server: DevServer): Promise<void> {
  const job = { projectId: PROJECT, jobId: 'job-2077' };
  sandbox.addJob({ projectId: PROJECT, id: job.jobId, status: 'active', turn: { durationMs: null } });
  sandbox.setFault({ name: 'http-503', ...job, operation: 'message', times: 1 });
  const followUp = await followUps.start({
    ...job,
    prompt: PROMPT,
    requestId: 'release-7.2-glossary',
    whenActive: 'send',
    onUnknownDelivery: 'ask',
    maxStaleness: '1s',
    reconcileTimeout: '1s',
  });
  await eventually('the follow-up waits for a decision', () => followUp.describe(), {
    until: ({ phase }) => phase === 'needs-decision',
  });
  const page = workflowPageUrl(server.uiUrl ?? '', followUp.workflowId, followUp.runId);
  await takePicture('web-ui-decision', `${page}/user-metadata`, 'why:', 1_100);
}

/** Captures a running batch with an item whose job does not exist. */
async function captureBatch({ followUps, sandbox }: Stage, server: DevServer): Promise<void> {
  const items = Array.from({ length: 8 }, (_, index) => ({
    projectId: PROJECT,
    jobId: `job-3${index}`,
    prompt: PROMPT,
  }));
  // The job of the second item does not exist.
  for (const [index, { jobId }] of items.entries()) {
    const turn = { durationMs: index < 4 ? 1_000 : null };
    if (index !== 1) sandbox.addJob({ projectId: PROJECT, id: jobId, turn });
  }
  const quick = { maxStaleness: '2s' } as const;
  const batch = await followUps.batches.start(
    items.map((item) => ({ ...item, ...quick })),
    { batchId: 'release-7.2', concurrency: 4 },
  );
  await eventually('four items have ended', () => batch.progress(), {
    until: ({ summary }) => (summary?.ended ?? 0) >= 4,
  });
  const { runId } = await followUps.client.workflow.getHandle(batch.workflowId).describe();
  const page = workflowPageUrl(server.uiUrl ?? '', batch.workflowId, runId);
  await takePicture('web-ui-batch', `${page}/user-metadata`, 'JobNotFound', 1_100);
}

/** Takes a picture of a page of the Web UI after the page or one of its frames shows the text. */
async function takePicture(name: string, url: string, text: string, height: number): Promise<void> {
  const file = path.join(DOCS, `${name}.png`);
  const { page, ...browser } = await openBrowser({ width: 1_400, height });
  try {
    await page.goto(url);
    await eventually(`${text} is shown`, async () => {
      const shown = await Promise.all(page.frames().map((frame) => frame.getByText(text).count()));
      return shown.some((count) => count > 0);
    });
    await page.waitForTimeout(LAYOUT_WAIT_MS);
    await page.screenshot({ path: file });
    printStatus(file);
  } finally {
    await browser.close();
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
