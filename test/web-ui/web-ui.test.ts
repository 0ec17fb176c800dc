import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { FollowUpClient } from '../../src/client';
import { type DevServer, startDevServer } from '../../dev/dev-server';
import { eventually } from '../harness/eventually';
import { type Following, Environment } from '../harness/environment';
import { SOON, untilItWaits } from '../harness/pending-poll';
import { temporal } from '../harness/temporal';
import { type Browser, openBrowser, pageOf } from './browser';

/** The Web UI is a single-page application that asks server and worker: its texts come seconds after the page. */
const SHOWN_WITHIN_MS = 20_000;

const JOB = { projectId: 'docs', jobId: 'job-1042' };
const REQUEST = { ...JOB, prompt: 'Fix the secret plans on page 7.', requestId: 'release-7.2' };

describe('the Web UI', () => {
  const closing: (() => Promise<unknown>)[] = [];
  let server: DevServer;
  let environment: Environment;
  let browser: Browser;
  let followUps: FollowUpClient;
  let workflowId: string;
  let runId: string;

  beforeAll(async () => {
    // First, because a machine without a browser needs no server.
    browser = await openBrowser({ width: 1_400, height: 1_400 });
    closing.unshift(() => browser.close());
    server = await startDevServer({ cli: temporal().cli, webUi: true, searchAttributes: true });
    closing.unshift(() => server.stop());
    environment = await Environment.open({ inProcessPolls: 0, address: server.address });
    closing.unshift(() => environment.close());
    followUps = new FollowUpClient(environment.client, { taskQueue: environment.taskQueue });
    environment.sandbox.addJob({ projectId: JOB.projectId, id: JOB.jobId, turn: { durationMs: null } });
    environment.sandbox.setFault({ name: 'http-503', ...JOB, operation: 'get', skip: 2, times: 1 });
    const polling = { initial: '1s', growth: 0, maximum: '1s', jitter: 0 } as const;
    ({ workflowId, runId } = await followUps.start({ ...REQUEST, polling }));
    await untilPolls(3);
  });

  afterAll(async () => {
    for (const close of closing) await close();
  });

  /** Opens a page of the Web UI, and waits until it shows a text. */
  async function open(url: string, text: string | RegExp): Promise<Page> {
    const { page } = browser;
    await page.goto(url);
    // A tooltip that is not shown may hold the same words.
    await page.getByText(text).locator('visible=true').first().waitFor({ timeout: SHOWN_WITHIN_MS });
    return page;
  }

  function followUpPage(): string {
    return pageOf(server.uiUrl ?? '', workflowId, runId);
  }

  async function untilPolls(polls: number): Promise<void> {
    await eventually(`${polls} polls`, async () => {
      const report = await followUps.getHandle(workflowId).progress();
      return report.from === 'worker' && report.progress.polls >= polls;
    });
  }

  /** The Web UI renders Markdown in frames of their own: summary, details, current details. */
  async function userMetadata(): Promise<string[]> {
    const page = await open(`${followUpPage()}/user-metadata`, 'Current Details');
    const frames = page.locator('iframe');
    await frames.nth(2).waitFor({ timeout: SHOWN_WITHIN_MS });
    const texts: string[] = [];
    for (let index = 0; index < 3; index += 1) {
      const body = frames.nth(index).contentFrame().locator('body');
      await body.getByText(/\S/).first().waitFor({ timeout: SHOWN_WITHIN_MS });
      texts.push(await body.innerText());
    }
    return texts;
  }

  describe('of a running follow-up', () => {
    it('shows its summary, its options, and where it stands', async () => {
      const [summary, details, current] = await userMetadata();

      expect(summary?.trim()).toBe('Follow-up to job job-1042 of project docs');
      expect(details).toMatch(/requestId:\s+release-7\.2/);
      expect(details).toMatch(/polling\.timerPolls:\s+3/);
      expect(details).toMatch(/prompt:\s+31 bytes, sha256/);
      expect(current?.trim()).toMatch(/^Follow-up release-7\.2 to job job-1042 of project docs/);
      expect(current).toMatch(/phase:\s+watching/);
      expect(current).toMatch(/last answer:\s+active/);
      expect(current).toMatch(/delivery:\s+accepted \(by response\)/);
      expect(current).toMatch(/observed:\s+active × \d+, http 503 × 1/);
      expect([summary, details, current].join()).not.toContain('secret plans');
    });

    it('tells the story in its timeline: what was done, what was answered, what comes next', async () => {
      const page = await open(followUpPage(), 'poll 3');

      const timeline = await page.locator('body').innerText();
      expect(timeline).toContain('sendMessage • look at the job, send the message');
      expect(timeline).toContain('sent: active, next in 1s');
      expect(timeline).toContain('getJob • poll 1');
      expect(timeline).toContain('poll 1: active, next in 1s');
      expect(timeline).toMatch(/poll 2: http 503: .*, next in 1s/);
    });
  });

  describe('of a finished follow-up', () => {
    beforeAll(async () => {
      environment.sandbox.changeJob(JOB, { status: 'completed', prLink: 'https://example.test/pull/1042' });
      await followUps.getHandle(workflowId).result();
    });

    it('shows the final job with its pull request', async () => {
      const page = await open(followUpPage(), 'Completed');

      await page.getByText('"prLink"').first().waitFor({ timeout: SHOWN_WITHIN_MS });
      const text = await page.locator('body').innerText();
      expect(text).toContain('"prLink": "https://example.test/pull/1042"');
      expect(text).toContain('"evidence": "seen-active"');
    });

    it('still shows where it ended', async () => {
      const [, , current] = await userMetadata();

      expect(current).toMatch(/phase:\s+done/);
      expect(current).toMatch(/pull request:\s+https:\/\/example\.test\/pull\/1042/);
    });

    it.each(['FollowUpPhase="done"', 'AgentProject="docs" AND AgentJobStatus="completed"'])(
      'lists it by %s',
      async (query) => {
        await untilListed(query, true);
        const page = await open(listPage(query), workflowId);

        expect(await page.locator('body').innerText()).toContain('1–1');
      },
    );

    it('does not list it by the phase that it has left', async () => {
      await untilListed('FollowUpPhase="watching"', false);
      const page = await open(listPage('FollowUpPhase="watching"'), 'No Workflows Found');

      expect(await page.locator('body').innerText()).not.toContain(workflowId);
    });
  });

  // The last one, because it stays in the lists as watching.
  describe('of a follow-up that is polled by the retries of one activity', () => {
    let following: Following;

    beforeAll(async () => {
      const job = { projectId: 'handbook', id: 'job-7', turn: { durationMs: null } };
      following = await environment.follow(job, { polling: SOON, deadline: '1h' });
      await untilItWaits(environment.sandbox, following);
    });

    it('tells in its timeline which activity reads, and which attempt it is at', async () => {
      const page = await open(pageOfPatientRead(), 'poll 3 and on');

      const timeline = await page.locator('body').innerText();
      expect(timeline).toMatch(
        /Attempt\s+\d+\s+\/\s+∞\s+•\s+pollJob\s+•\s+poll 3 and on, until active changes/,
      );
      expect(timeline).toContain('poll 1: active, next in 1s');
    });

    it('shows its last answer, its counts and its next attempt among the pending activities', async () => {
      const page = await open(`${pageOfPatientRead()}/pending-activities`, 'Next Retry');

      const text = await page.locator('body').innerText();
      expect(text).toMatch(/\d+\s+\/\s+UNLIMITED/);
      expect(text).toMatch(/Next Retry\s[^()]*\(\d+s\)/);
      expect(text).toMatch(/"message": "poll \d+ of this activity: http 429: .*, next in 2m"/);
      expect(text).toMatch(/"observed": \{[^}]*"http 429": 1/);
    });

    it('says in its current details that the pending activity reads', async () => {
      const page = await open(`${pageOfPatientRead()}/user-metadata`, 'Current Details');

      const body = page.locator('iframe').first().contentFrame().locator('body');
      await body.getByText('phase').first().waitFor({ timeout: SHOWN_WITHIN_MS });
      const current = await body.innerText();
      expect(current).toMatch(/phase:\s+watching/);
      expect(current).toMatch(/polls:\s+2, and those of the pending activity/);
      expect(current).toMatch(/next read:\s+by the pending activity/);
    });

    function pageOfPatientRead(): string {
      return pageOf(server.uiUrl ?? '', following.handle.workflowId, following.firstRunId);
    }
  });

  function listPage(query: string): string {
    return `${server.uiUrl ?? ''}/namespaces/default/workflows?query=${encodeURIComponent(query)}`;
  }

  /** The list is eventually consistent, and the Web UI asks for it once. */
  async function untilListed(query: string, listed: boolean): Promise<void> {
    await eventually(
      `${query} ${listed ? 'lists' : 'does not list'} the follow-up`,
      () => environment.client.workflow.count(query),
      { until: ({ count }) => count === (listed ? 1 : 0) },
    );
  }
});
