import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { StartedFollowUp } from '../../../src/entries/client';
import { type DevServer, startDevServer } from '../../../tools/lib/dev-server';
import { openBrowser, workflowPageUrl } from '../../../tools/lib/browser';
import { Environment } from '../../harness/environment';
import { eventually } from '../../../tools/lib/eventually';
import { ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { RARE_POLL_OPTIONS, waitForLongBackoff } from '../../harness/pending-poll';
import { temporal } from '../../harness/temporal';

const closing: (() => Promise<unknown>)[] = [];
let server: DevServer;
let environment: Environment;
let browser: Awaited<ReturnType<typeof openBrowser>>;
let handle: StartedFollowUp;

beforeAll(async () => {
  // The browser starts first, so that no server starts on a machine without a browser.
  browser = await openBrowser({ width: 1_400, height: 1_400 });
  closing.unshift(() => browser.close());
  // No timeout applies, because the texts appear later than the page: the Web UI requests them from the Temporal server and the worker.
  browser.page.setDefaultTimeout(0);
  server = await startDevServer({ cli: temporal().cli, webUi: true, searchAttributes: true });
  closing.unshift(() => server.stop());
  environment = await Environment.open({ address: server.address });
  closing.unshift(() => environment.close());
  const fault = { name: 'http-503', operation: 'get', skip: 2, times: 1 } as const;
  handle = await environment.followUps.start({
    ...environment.addJob({ projectId: 'docs', id: 'job-1042', ...ENDLESS_TURN }, fault),
    ...{ prompt: 'Fix the secret plans on page 7.', requestId: 'release-7.2' },
    // The intervals are long, so that every wait has a timer even on a slow machine. `pollNow` ends a wait.
    polling: { initial: '1m', growth: 0, maximum: '1m', jitter: 0, timerPolls: 3 },
    maxStaleness: '0s',
  });
  // The first poll starts immediately, because `maxStaleness` is `0s` and every read is fresh.
  await hasPolled(1);
  for (const polls of [2, 3]) {
    await handle.pollNow();
    await hasPolled(polls);
  }
});

async function hasPolled(polls: number): Promise<void> {
  await eventually(`the job was polled ${polls} times`, async () => {
    const report = await handle.progress();
    return report.from === 'worker' && report.progress.polls === polls;
  });
}

afterAll(async () => {
  for (const close of closing) await close();
});

/** Opens a page of the Web UI, waits until the page shows a text, and returns the whole text of the page. */
async function openPage(url: string, text: string): Promise<string> {
  const { page } = browser;
  await page.goto(url);
  // A hidden tooltip may have the same text.
  await page.getByText(text).locator('visible=true').first().waitFor();
  return page.locator('body').innerText();
}

/** Returns the texts that the Web UI shows as Markdown, each in a separate frame: summary, details and current details. */
async function userMetadata(page: string, count: number): Promise<string[]> {
  await openPage(`${page}/user-metadata`, 'Current Details');
  const frames = browser.page.locator('iframe');
  await frames.nth(count - 1).waitFor();
  const texts: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const body = frames.nth(index).contentFrame().locator('body');
    await body.getByText(/\S/).first().waitFor();
    texts.push(await body.innerText());
  }
  return texts;
}

const followUpPage = () => workflowPageUrl(server.uiUrl ?? '', handle.workflowId, handle.runId);

describe('the Web UI', () => {
  it('shows the summary, the options, the timeline and the state of a follow-up, its result with the pull request, and no prompt', async () => {
    const [summary, details, current] = await userMetadata(followUpPage(), 3);
    expect(summary?.trim()).toBe('Follow-up to job job-1042 of project docs');
    expect(details).toMatch(/requestId:\s+release-7\.2[^]*prompt:\s+31 bytes, sha256/);
    expect(details).toMatch(/polling\.timerPolls:\s+3/);
    expect(current?.trim()).toMatch(/^Follow-up release-7\.2 to job job-1042 of project docs/);
    for (const row of [
      /phase:\s+watching/,
      /last response:\s+active/,
      /delivery:\s+accepted \(by response\)/,
      /responses:\s+active × \d+, http_503 × 1/,
    ])
      expect(current).toMatch(row);
    expect([summary, details, current].join()).not.toContain('secret plans');

    const timeline = await openPage(followUpPage(), 'poll 3');
    expect(timeline).toContain('sendMessage • read the job, then send the message');
    expect(timeline).toContain('watching, poll 1: active, next read in 1m');
    expect(timeline).toContain('getJob • poll 1');
    expect(timeline).toMatch(/poll 2: http 503: .*, next read in 1m/);

    const prLink = 'https://example.test/pull/1042';
    environment.sandbox.changeJob({ projectId: 'docs', jobId: 'job-1042' }, { status: 'completed', prLink });
    await handle.pollNow();
    await handle.result();
    expect(await openPage(followUpPage(), '"prLink"')).toContain(`"prLink": "${prLink}"`);
    const [, , last] = await userMetadata(followUpPage(), 3);
    expect(last).toMatch(/phase:\s+done/);
    expect(last).toContain(prLink);
  });

  it('shows the pending pollJob activity with its last failure and its next attempt', async () => {
    const job = { projectId: 'handbook', id: 'job-7', ...ENDLESS_TURN };
    const following = await environment.follow(job, RARE_POLL_OPTIONS);
    await waitForLongBackoff(following);
    const page = workflowPageUrl(server.uiUrl ?? '', following.handle.workflowId, following.firstRunId);
    const timeline = await openPage(page, 'poll 2 and later polls');
    expect(timeline).toMatch(
      /Attempt\s+\d+\s+\/\s+∞\s+•\s+pollJob\s+•\s+poll 2 and later polls, while the job is active/,
    );
    const pending = await openPage(`${page}/pending-activities`, 'Next Retry');
    expect(pending).toMatch(/\d+\s+\/\s+UNLIMITED/);
    expect(pending).toMatch(/Next Retry\s[^()]*\((\d+[hms]\s?)+\)/);
    expect(pending).toMatch(/"message": "poll \d+: active, next read in \d+/);
    const [current] = await userMetadata(page, 1);
    expect(current).toMatch(/polls:\s+1; later reads are in the pending activity/);
    expect(current).toMatch(/next read:.*; later reads are in the pending activity/);
  });

  it('shows the reason why a follow-up waits for a decision, and the polls of this follow-up', async () => {
    const lost = { name: 'http-503', operation: 'message' } as const;
    const options = {
      onUnknownDelivery: 'ask',
      maxStaleness: '200ms',
      reconcileTimeout: '200ms',
      deadline: '1h',
    } as const;
    const following = await environment.follow({ status: 'active', ...ENDLESS_TURN }, options, lost);
    const page = workflowPageUrl(server.uiUrl ?? '', following.handle.workflowId, following.firstRunId);
    await openPage(page, 'pollJob • poll');
    const [current] = await userMetadata(page, 1);
    expect(current).toMatch(/why:\s+it is unknown whether the message arrived: http 503/);
    expect(current).not.toContain('\\');
    await following.handle.cancel();
  });
});
