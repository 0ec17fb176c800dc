import type { ReusableVMWorkflowCreator } from '@temporalio/worker/lib/workflow/reusable-vm';
import { keyFromText } from '../../../src/agent-api/api-key';
import { createAgentApi } from '../../../src/agent-api/client';
import { createActivities } from '../../../src/activities';
import { BatchEnds, findBatch } from '../../../src/client/batch/describe';
import { Calls } from '../../../src/client/call';
import { type BatchMemo, CHUNK_WORKFLOW, MEMO_BATCH, type Position } from '../../../src/core/batch/state';
import { FollowUpError } from '../../../src/core/errors';
import { batchWorkflowId } from '../../../src/core/ids';
import { AgentService } from '../agent-service';
import { BEGIN, VirtualClock } from '../clock';
import { Luck } from '../luck';
import { isOfMachines, Machines } from '../machines';
import { fromPayload } from '../temporal/history';
import type { Run } from '../temporal/run';
import { TemporalServer } from '../temporal/server';
import { clientOf } from '../temporal/service';
import type { SimulatedWorker } from '../worker/worker';
import { type Entry, HTTP_TIMEOUT_MS, SETTINGS, TASK_QUEUES } from '../world';
import { BATCH_ID, BatchPeople } from './people';
import type { BatchAct, BatchPlan } from './plan';
import type { BatchFacts, Done, StartOfItem } from './timeline';

/** Nothing lasts longer: what still runs then waits for ever. */
const HORIZON_MS = 3 * 86_400_000;

/** Far more than a world takes: more steps mean an endless loop. */
const MOST_STEPS = 1_000_000;

/** A workflow task that fails is tried again for ever. */
const MOST_BROKEN = 20;

const LONGEST_PAUSE_S = 120;

/** Longer than lists lag, and than a live reader looks back. */
const UNTIL_LISTED_MS = 90_000;

/** One batch, its jobs, the machines and the people around it, on one clock. */
export class BatchWorld {
  private readonly luck: Luck;
  private readonly clock: VirtualClock;
  private readonly server: TemporalServer;
  private readonly services = new Map<string, AgentService>();
  private readonly machines: Machines;
  private readonly people: BatchPeople;
  private readonly log: Entry[] = [];
  private readonly broken: string[] = [];
  private readonly starts: StartOfItem[] = [];
  private readonly done: Done[] = [];
  private readonly points = new Map<string, number>();
  private readonly noted = new Set<Run>();
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
    const calls = new Calls(clientOf(this.server, reach, named), TASK_QUEUES.followUp);
    this.people = new BatchPeople(plan, calls, this.server, this.clock);
  }

  async play(): Promise<BatchFacts> {
    try {
      const over = { is: false };
      const script = this.script().finally(() => (over.is = true));
      script.catch(() => undefined);
      await this.clock.run(() => over.is, MOST_STEPS);
      if (over.is) await script;
      else this.broken.push('it loops without an end');
      const { plan, server, starts, done, log, broken, told } = this;
      const { names, deleted } = this.people;
      const requests = [...this.services.values()].flatMap((service) => service.requests);
      return { plan, names, runs: server.runs, requests, starts, done, log, broken, deleted, told };
    } finally {
      this.machines.killAll();
      this.clock.uninstall();
    }
  }

  private async script(): Promise<void> {
    const batch = await this.people.checked();
    for (let count = 0; count < this.plan.workers; count += 1) this.machines.add();
    const { concurrency, tolerate } = this.plan;
    this.letPeople({ kind: 'start', times: 1 }, () => this.people.start(batch, { concurrency, tolerate }));
    this.reached('started');
    await this.quiet();
    for (
      let again = 0;
      this.plan.finishes && this.people.batchRun?.status !== 'WorkflowExecutionCompleted' && again < 2;
      again += 1
    ) {
      this.letPeople({ kind: 'start', times: 1 }, () => this.people.start(batch, { tolerate: null }));
      await this.quiet();
    }
    await this.clock.sleep(UNTIL_LISTED_MS);
    if (this.server.latest(batchWorkflowId(BATCH_ID)) === undefined) return;
    const { client } = this.people.calls;
    const description = await findBatch(client, BATCH_ID);
    try {
      this.told = { batch: description, ends: await new BatchEnds(client).news(description) };
    } catch (error) {
      // Its items may be older than the retention.
      if (!(error instanceof FollowUpError)) throw error;
      this.say('people', `the results: ${error.message}`);
    }
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
    const run = this.people.batchRun;
    const isPaused =
      run?.isOpen && (fromPayload(run.memo[MEMO_BATCH]) as BatchMemo | undefined)?.paused === true;
    this.pausedFor = isPaused === true && this.waitsFor === 0 ? this.pausedFor + 1 : 0;
    if (this.pausedFor < LONGEST_PAUSE_S) return;
    this.pausedFor = 0;
    const act: BatchAct = { kind: 'resume' };
    this.letPeople(act, () => this.people.carryOut(act));
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
    const number = this.people.names.indexOf(workflowId);
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
    if (!isOfMachines(act)) this.letPeople(act, () => this.people.carryOut(act));
    else if (this.machines.do(act, worker)) this.say('deed', inWords(act));
  }

  /** Somebody does something; an error of the client is an answer, any other one is a bug. */
  private letPeople(act: BatchAct, work: () => Promise<unknown>): void {
    const done: Done = {
      act,
      at: this.clock.now,
      endedAt: Infinity,
      failed: null,
      run: this.people.batchRun,
    };
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
