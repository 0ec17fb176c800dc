import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { keyFromText } from '../../../src/agent-api/api-key';
import { createAgentApi } from '../../../src/agent-api/client';
import { createActivities } from '../../../src/activities';
import { BatchHandle } from '../../../src/client/batch/batch-client';
import { checkBatch, type CheckedBatch } from '../../../src/client/batch/check';
import { BatchEnds, type BatchReport, findBatch } from '../../../src/client/batch/describe';
import { retryBatch, startBatch } from '../../../src/client/batch/start';
import { Calls } from '../../../src/client/call';
import { type NamedRequest, retryFollowUp, startFollowUp } from '../../../src/client/start';
import { requestIdOf } from '../../../src/core/batch/items';
import { type BatchMemo, CHUNK_WORKFLOW, MEMO_BATCH, type Position } from '../../../src/core/batch/state';
import { type ItemEnd } from '../../../src/core/batch/progress';
import { FollowUpError } from '../../../src/core/errors';
import { batchWorkflowId, followUpWorkflowId } from '../../../src/core/ids';
import { AgentService, type Request } from '../agent-service';
import { BEGIN, VirtualClock } from '../clock';
import { Luck } from '../luck';
import { isOfMachines, Machines } from '../machines';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';
import { TemporalServer } from '../temporal/server';
import { clientOf } from '../temporal/service';
import type { SimulatedWorker } from '../worker/worker';
import { type Entry, HTTP_TIMEOUT_MS, SETTINGS, TASK_QUEUES } from '../world';
import type { BatchAct, BatchPlan } from './plan';

export const BATCH_ID = 'batch';

/** Nothing lasts longer: what still runs then waits for ever. */
const HORIZON_MS = 3 * 86_400_000;

/** Far more than a world takes: more steps mean an endless loop. */
const MOST_STEPS = 1_000_000;

/** A workflow task that fails is tried again for ever. */
const MOST_BROKEN = 20;

const LONGEST_PAUSE_S = 120;

/** Longer than lists lag, and than a live reader looks back. */
const UNTIL_LISTED_MS = 90_000;

/** A start of a follow-up by a run of the batch, with what the server had of that run at this moment. */
export interface StartOfItem {
  readonly run: Run;
  readonly batch: Run;
  readonly memo: BatchMemo;
  /** By the latest heartbeat of the activity. */
  readonly kept: Position | null;
}

/** Something that people have done to the batch or its items. */
export interface Done {
  readonly act: BatchAct;
  readonly at: number;
  endedAt: number;
  failed: string | null;
  answer?: unknown;
  /** The run of the batch at that time. */
  readonly run: Run | undefined;
}

/** What is known of a world once all in it has ended. */
export interface BatchFacts {
  readonly plan: BatchPlan;
  /** The workflow ids of the items, in the order of the file. */
  readonly names: readonly string[];
  readonly runs: readonly Run[];
  readonly requests: readonly Request[];
  readonly starts: readonly StartOfItem[];
  readonly done: readonly Done[];
  readonly log: readonly Entry[];
  readonly broken: readonly string[];
  /** With the time. */
  readonly deleted: ReadonlyMap<Run, number>;
  /** What is told of it at the end; null where the server has forgotten it. */
  readonly told: { readonly batch: BatchReport; readonly ends: readonly ItemEnd[] } | null;
}

/** One batch, its jobs, the machines and the people around it, on one clock. */
export class BatchWorld {
  private readonly luck: Luck;
  private readonly clock: VirtualClock;
  private readonly server: TemporalServer;
  private readonly services = new Map<string, AgentService>();
  private readonly machines: Machines;
  private readonly calls: Calls;
  private readonly log: Entry[] = [];
  private readonly broken: string[] = [];
  private readonly starts: StartOfItem[] = [];
  private readonly done: Done[] = [];
  private readonly deleted = new Map<Run, number>();
  private readonly points = new Map<string, number>();
  private readonly noted = new Set<Run>();
  private names: readonly string[] = [];
  /** Calls of people that are under way, and deeds whose point was reached. */
  private waitsFor = 0;
  /** In seconds, while nobody does anything. */
  private pausedFor = 0;
  private told: BatchFacts['told'] = null;

  constructor(
    private readonly plan: BatchPlan,
    workflows: ReusableVMWorkflowCreator,
  ) {
    const { seed, suggestFrom, listLagMs, retentionMs } = plan;
    this.luck = new Luck(seed);
    this.clock = new VirtualClock(() => this.luck.next('random'));
    const options = { suggestFrom, listLagMs, ...(retentionMs === null ? {} : { retentionMs }) };
    this.server = new TemporalServer(this.clock, this.luck, options, () => undefined);
    for (const { projectId, jobId, job, spells } of plan.jobs) {
      const service = new AgentService(this.clock, this.luck, { job, spells }, this.reached, jobId);
      this.services.set(`/v2/agent/${projectId}/job/${jobId}`, service);
    }
    const evicts = new Luck(seed * 2 + 1);
    this.machines = new Machines({
      ...{ clock: this.clock, luck: this.luck, server: this.server, workflows, reached: this.reached },
      activities: (self, shutdown) => this.activitiesOf(self, shutdown),
      logged: () => undefined,
      failed: (run, why) => this.broken.push(`a workflow task of ${run.workflowId} fails: ${why}`),
      evicts: (run) => evicts.chance('evict', 1 / (15 + run.events.length / 4)),
    });
    const pause = (method: string) =>
      this.luck.between(`their ${method}`, 1, this.luck.chance('is slow', 0.15) ? plan.paceMs : 60);
    const reach = async <T>(method: string, answer: () => T): Promise<T> => {
      await this.clock.sleep(pause(method));
      await new Promise<void>((resolve) => this.server.whenThere(resolve));
      const value = answer();
      await this.clock.sleep(pause(method));
      return value;
    };
    const named = { namespace: `${this.server.namespace} of people`, identity: 'people' };
    this.calls = new Calls(clientOf(this.server, reach, named), TASK_QUEUES.followUp);
  }

  async play(): Promise<BatchFacts> {
    try {
      const over = { is: false };
      const script = this.script().finally(() => (over.is = true));
      script.catch(() => undefined);
      await this.clock.run(() => over.is, MOST_STEPS);
      if (over.is) await script;
      else this.broken.push('it loops without an end');
      const { plan, names, server, starts, done, log, broken, deleted, told } = this;
      const requests = [...this.services.values()].flatMap((service) => service.requests);
      return { plan, names, runs: server.runs, requests, starts, done, log, broken, deleted, told };
    } finally {
      this.machines.killAll();
      this.clock.uninstall();
    }
  }

  private async script(): Promise<void> {
    const batch = await this.checked();
    this.names = batch.items.map((item) => {
      const { projectId, jobId } = item.request;
      return followUpWorkflowId(projectId, jobId, requestIdOf(BATCH_ID, item));
    });
    for (let count = 0; count < this.plan.workers; count += 1) this.machines.add();
    const { concurrency, tolerate } = this.plan;
    this.people({ kind: 'start', times: 1 }, () => this.start(batch, { concurrency, tolerate }));
    this.reached('started');
    await this.quiet();
    for (
      let again = 0;
      this.plan.finishes && this.batchRun?.status !== 'WorkflowExecutionCompleted' && again < 2;
      again += 1
    ) {
      this.people({ kind: 'start', times: 1 }, () => this.start(batch, { tolerate: null }));
      await this.quiet();
    }
    await this.clock.sleep(UNTIL_LISTED_MS);
    if (this.server.latest(batchWorkflowId(BATCH_ID)) === undefined) return;
    const { client } = this.calls;
    const description = await findBatch(client, BATCH_ID);
    try {
      this.told = { batch: description, ends: await new BatchEnds(client).news(description) };
    } catch (error) {
      // Its items may be older than the retention.
      if (!(error instanceof FollowUpError)) throw error;
      this.say('people', `the results: ${error.message}`);
    }
  }

  private checked(): Promise<CheckedBatch> {
    const { items, jobs, request } = this.plan;
    const requests = items.map(({ job, prompt, requestId }) => ({
      ...{ projectId: jobs[job]?.projectId ?? '', jobId: jobs[job]?.jobId ?? '', prompt, ...request },
      ...(requestId === undefined ? {} : { requestId }),
    }));
    return checkBatch(requests, { batchId: BATCH_ID });
  }

  /** Until all has ended, and nobody does anything more. */
  private async quiet(): Promise<void> {
    const runs = () => this.server.runs.filter(({ start }) => start.workflowType !== CHUNK_WORKFLOW);
    while (this.waitsFor > 0 || runs().some(({ isOpen }) => isOpen)) {
      await this.clock.sleep(1_000);
      this.noteEnds();
      this.resumeAtLast();
      if (this.clock.now - BEGIN < HORIZON_MS && this.broken.length < MOST_BROKEN) continue;
      for (const run of runs()) if (run.isOpen) this.broken.push(`${run.workflowId} has not ended`);
      if (this.waitsFor > 0) this.broken.push('somebody waits for an answer');
      return;
    }
  }

  /** A pause may have come without an answer, or again by a reset: nothing must wait for ever. */
  private resumeAtLast(): void {
    const run = this.batchRun;
    const isPaused =
      run?.isOpen && (fromPayload(run.memo[MEMO_BATCH]) as BatchMemo | undefined)?.paused === true;
    this.pausedFor = isPaused === true && this.waitsFor === 0 ? this.pausedFor + 1 : 0;
    if (this.pausedFor < LONGEST_PAUSE_S) return;
    this.pausedFor = 0;
    const act: BatchAct = { kind: 'resume' };
    this.people(act, () => this.carryOut(act));
  }

  private get batchRun(): Run | undefined {
    return this.server.runs.findLast(({ workflowId }) => workflowId === batchWorkflowId(BATCH_ID));
  }

  private say(who: string, what: string): void {
    this.log.push({ at: this.clock.now - BEGIN, who, what });
  }

  /** A point in the story: what is planned for it happens. */
  private readonly reached = (point: string, worker?: SimulatedWorker): void => {
    if (point === 'start recorded') this.noteStart();
    const nth = (this.points.get(point) ?? 0) + 1;
    this.points.set(point, nth);
    if (TOLD.has(point)) this.say(worker?.name ?? 'world', point);
    for (const { at, nth: wanted, afterMs, act } of this.plan.deeds) {
      if (at !== point || wanted !== nth) continue;
      this.waitsFor += 1;
      const work = () => {
        this.waitsFor -= 1;
        this.do(act, worker ?? this.machines.any);
      };
      if (afterMs === 0) work();
      else this.clock.after(afterMs, work);
    }
  };

  private noteStart(): void {
    const run = this.server.runs.at(-1);
    const batch = this.server.runs.find(({ runId }) => runId === run?.start.asked?.by);
    if (run === undefined || batch === undefined || this.starts.at(-1)?.run === run) return;
    const memo = fromPayload(batch.memo[MEMO_BATCH]) as BatchMemo;
    const activity = [...batch.activities.values()].find(({ name }) => name === 'runItems');
    const kept = (fromPayload(activity?.details?.[0]) as Position | undefined) ?? null;
    this.starts.push({ run, batch, memo, kept });
    this.say(batch.runId, `starts ${this.itemOf(run)} as ${run.runId}`);
  }

  private noteEnds(): void {
    for (const run of this.server.runs) {
      if (run.isOpen || this.noted.has(run)) continue;
      this.noted.add(run);
      const isBatch = run.workflowId === batchWorkflowId(BATCH_ID);
      const why = run.end.failure?.applicationFailureInfo?.type ?? '';
      this.say(run.runId, `${isBatch ? 'the batch' : this.itemOf(run)}: ${run.status.slice(17)} ${why}`);
      if (run.status !== 'WorkflowExecutionContinuedAsNew')
        this.reached(isBatch ? 'batch ended' : 'item ended');
    }
  }

  private itemOf({ workflowId }: Run): string {
    const number = this.names.indexOf(workflowId);
    return number < 0 ? workflowId : `item ${number} (${workflowId.split(':')[2] ?? ''})`;
  }

  private activitiesOf(worker: SimulatedWorker, shutdown: AbortSignal) {
    const agentApi = createAgentApi({
      ...{ baseUrl: 'http://agent.example', apiKey: keyFromText('key_simulated-secret') },
      timeoutMs: HTTP_TIMEOUT_MS,
      exchange: (dispatcher, request, ...rest) => {
        const service = this.services.get(request.path.replace(/\/message$/, ''));
        if (service === undefined) throw new Error(`there is no ${request.path}`);
        return service.exchangeFor(worker)(dispatcher, request, ...rest);
      },
    });
    return { ...createActivities(agentApi, SETTINGS, { maximum: 100, shutdown }) };
  }

  private do(act: BatchAct, worker: SimulatedWorker | undefined): void {
    if (!isOfMachines(act)) this.people(act, () => this.carryOut(act));
    else if (this.machines.do(act, worker)) this.say('deed', inWords(act));
  }

  /** Somebody does something; an error of the client is an answer, any other one is a bug. */
  private people(act: BatchAct, work: () => Promise<unknown>): void {
    const done: Done = { act, at: this.clock.now, endedAt: Infinity, failed: null, run: this.batchRun };
    this.done.push(done);
    this.waitsFor += 1;
    this.say('deed', inWords(act));
    const told = (answer: unknown) => {
      done.answer = answer;
      this.say(
        'people',
        `${act.kind}: ${answer === undefined ? 'done' : JSON.stringify(answer).slice(0, 200)}`,
      );
    };
    const failed = (error: unknown) => {
      if (!(error instanceof FollowUpError))
        this.broken.push(`${act.kind}: ${String((error as Error).stack)}`);
      done.failed = error instanceof FollowUpError ? error.code : String(error);
      this.say('people', `${act.kind}: ${String(error)}`);
    };
    // Not in the name of the process that has reached the point, nor within the deadline of its call.
    this.clock.after(0, () => {
      void work()
        .then(told, failed)
        .finally(() => {
          this.waitsFor -= 1;
          done.endedAt = this.clock.now;
        });
    });
  }

  private start(batch: CheckedBatch, options: Pick<Partial<BatchPlan>, 'concurrency' | 'tolerate'>) {
    const { partBytes } = this.plan;
    return this.calls.run({}, (client, signal) =>
      startBatch(
        { client, taskQueue: TASK_QUEUES.followUp, options, signal, partBytes: partBytes ?? undefined },
        batch,
      ),
    );
  }

  private async carryOut(act: Exclude<BatchAct, Parameters<Machines['do']>[0]>): Promise<unknown> {
    const { calls, server } = this;
    const handle = new BatchHandle(calls, BATCH_ID);
    switch (act.kind) {
      case 'start': {
        const batch = await this.checked();
        return Promise.all(Array.from({ length: act.times }, () => this.start(batch, {})));
      }
      case 'terminate':
        this.batchRun?.terminate();
        if (act.startsAfterMs === null) return undefined;
        await this.clock.sleep(act.startsAfterMs);
        return this.start(await this.checked(), {});
      case 'cancel':
        return handle.cancel({ followUps: act.followUps });
      case 'pause': {
        await handle.pause();
        await this.clock.sleep(act.ms);
        return (await handle.resume()).state;
      }
      case 'resume':
        return (await handle.resume()).state;
      case 'set concurrency':
        return (await handle.setConcurrency(act.concurrency)).state;
      case 'reset': {
        const points = this.batchRun?.resetPoints() ?? [];
        const point = points[Math.floor(act.share * points.length)];
        const run = point && this.batchRun && server.reset(this.batchRun, point);
        return { to: run?.runId };
      }
      case 'retry': {
        const options = { includeUnknown: act.includeUnknown };
        return calls.run({}, (client, signal) =>
          retryBatch({ client, taskQueue: TASK_QUEUES.followUp, options, signal }, BATCH_ID),
        );
      }
      case 'results':
        return (await handle.settled()).length;
      default:
        return this.carryOutFor(act, Math.floor(act.item * this.names.length));
    }
  }

  private async carryOutFor(
    act: Extract<BatchAct, { readonly item: number }>,
    number: number,
  ): Promise<unknown> {
    const { calls, server } = this;
    const workflowId = this.names[number] ?? '';
    const run = server.latest(workflowId);
    if (act.kind === 'foreign') {
      const item = (await this.checked()).items[number];
      if (item === undefined) return undefined;
      const prompt = act.samePrompt ? item.request.prompt : 'Another message.';
      const request: NamedRequest = { ...item.request, prompt, requestId: requestIdOf(BATCH_ID, item) };
      const { attached, runId } = await calls.run({}, (client) =>
        startFollowUp(client, TASK_QUEUES.followUp, request),
      );
      return `item ${number}: ${runId}, ${String(attached)}`;
    }
    if (run === undefined || run.isOpen === /^(retry|delete)/.test(act.kind)) return 'nothing to do';
    if (act.kind === 'retry item')
      return calls.run({}, (client, signal) => retryFollowUp(client, workflowId, signal));
    if (act.kind === 'delete item') {
      this.deleted.set(run, this.clock.now);
      server.delete(run);
    } else if (act.kind === 'cancel item') run.requestCancel();
    else run.terminate();
    return `item ${number}: ${run.runId}`;
  }
}

function inWords({ kind, ...more }: BatchAct): string {
  const words = Object.entries(more).map(([name, value]) => `${name} ${String(value)}`);
  return [kind, ...words].join(', ');
}

/** Points that a story tells. */
const TOLD = new Set([
  'runItems started',
  'keep recorded',
  'runItems reported',
  'post begun',
  'post processed',
  'closeChunks started',
]);
