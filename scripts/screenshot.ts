/**
 * Takes docs/web-ui.png: `npm run screenshot`. A follow-up runs to its end on a dev server, a sandbox agent service and
 * a worker of its own, with one 503 on its way, and a headless Chromium takes the picture of its page in the Web UI.
 */
import path from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { FollowUpClient } from '../src/client';
import { startDemoWorker } from '../dev/demo-worker';
import { type DevServer, startDevServer, stripTemporalEnv } from '../dev/dev-server';
import { findTemporalCli } from '../dev/temporal-cli';
import { startSandbox } from '../sandbox';
import { openBrowser, pageOf } from '../test/harness/browser';

const PICTURE = path.resolve(__dirname, '../docs/web-ui.png');

/** Tall enough for the head of the page, the result, and the timeline of five polls. */
const VIEWPORT = { width: 1_400, height: 1_210 };

/** Some polls while the agent works, so that the timeline has something to tell. */
const TURN_MS = 16_000;

async function main(): Promise<void> {
  const say = (line: string): void => {
    console.error(line);
  };
  const cli = await findTemporalCli({ env: process.env, say });
  const server = await startDevServer({ cli: cli.path, webUi: true });
  try {
    const { workflowId, runId } = await runFollowUp(server);
    await takePicture(pageOf(server.uiUrl ?? '', workflowId, runId));
    say(PICTURE);
  } finally {
    await server.stop();
  }
}

async function runFollowUp(server: DevServer): Promise<{ workflowId: string; runId: string }> {
  const sandbox = await startSandbox({ seedJobs: false });
  const env = {
    ...stripTemporalEnv(process.env),
    TEMPORAL_ADDRESS: server.address,
    TEMPORAL_NAMESPACE: server.namespace,
  };
  const worker = await startDemoWorker(env, sandbox);
  try {
    await worker.ready();
    const job = { projectId: 'docs', jobId: 'job-1042' };
    sandbox.addJob({ projectId: job.projectId, id: job.jobId, turn: { durationMs: TURN_MS } });
    // The look before the send is the first read, poll 1 the second.
    sandbox.setFault({ name: 'http-503', ...job, operation: 'get', skip: 2, times: 1 });
    const connection = await Connection.connect({ address: server.address });
    const followUps = new FollowUpClient(new Client({ connection }));
    try {
      const { workflowId, runId } = await followUps.start({
        ...job,
        prompt: 'Please fix the broken links on the start page.',
        requestId: 'release-7.2-links',
        polling: { initial: '3s', jitter: 0 },
      });
      await followUps.getHandle(workflowId).result();
      return { workflowId, runId };
    } finally {
      await followUps.close();
    }
  } finally {
    await worker.stop();
    await sandbox.close();
  }
}

async function takePicture(url: string): Promise<void> {
  const { page, ...browser } = await openBrowser(VIEWPORT);
  try {
    await page.goto(url);
    await page.getByText('poll 4 and on').first().waitFor();
    // The page moves as its parts arrive.
    await page.waitForLoadState('networkidle');
    await page.screenshot({ path: PICTURE });
  } finally {
    await browser.close();
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
