import { EventEmitter, once } from 'node:events';
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';

export type ProbeActivities = ReturnType<typeof createProbeActivities>;

const ALL_GATES = 'over';

/** Gates at which a test can hold an activity. `reached` has the names of the gates that activities have reached. */
export class Gates {
  readonly reached = new Set<string>();
  /** All started attempts, in order. After a reset of the workflow, the attempts of an activity count from 1 again in the new run. */
  readonly starts: { readonly runId: string; readonly attempt: number }[] = [];
  private readonly opened = new Set<string>();
  private readonly events = new EventEmitter();

  open(name: string): void {
    this.opened.add(name);
    this.events.emit(name);
  }

  /** Closes a gate again. */
  shut(name: string): void {
    this.opened.delete(name);
    this.reached.delete(name);
  }

  /** Opens all gates, so that all activities end. */
  openAll(): void {
    this.open(ALL_GATES);
  }

  async waitForOpen(name = ALL_GATES): Promise<void> {
    this.reached.add(name);
    if (this.opened.has(name) || this.opened.has(ALL_GATES)) return;
    await Promise.race([once(this.events, name), once(this.events, ALL_GATES)]);
  }
}

/** The activity of the probe, which performs the steps of its input. */
export function createProbeActivities(gatesOf: (workflowId: string) => Gates) {
  return {
    /**
     * @param attempts the steps of each attempt before it completes, for example `beat kept, hang | gate g`; further attempts repeat the last
     */
    async perform(label: string, attempts: string): Promise<string> {
      const { info } = Context.current();
      const { workflowId = '', runId = '' } = info.workflowExecution ?? {};
      const gates = gatesOf(workflowId);
      gates.starts.push({ runId, attempt: info.attempt });
      const scripts = attempts.split('|');
      for (const step of (scripts[info.attempt - 1] ?? scripts.at(-1) ?? '').split(','))
        await perform(step.trim().split(' '), gates);
      const kept: unknown = info.heartbeatDetails;
      return `${label} ${info.attempt}${kept === undefined ? '' : ` had ${JSON.stringify(kept)}`}`;
    },
  };
}

async function perform([step, word = '', againMs, details]: string[], gates: Gates): Promise<void> {
  const context = Context.current();
  switch (step) {
    case 'beat':
      context.heartbeat(word);
      return;
    // Sends a heartbeat with a separate call, and records the error if the Temporal server rejects it.
    case 'request-heartbeat': {
      const { info, client } = context;
      return client.activity.heartbeat(info.taskToken, word === '' ? null : word).catch((error: unknown) => {
        gates.reached.add(error instanceof Error ? error.message : 'rejected');
      });
    }
    case 'gate':
      // `own` means a separate gate for each attempt.
      return gates.waitForOpen(word === 'own' ? `started ${gates.starts.length}` : word);
    // Reports nothing more, like an activity whose worker died.
    case 'hang':
      return gates.waitForOpen();
    // Sends heartbeats until the activity is cancelled, and then continues or, with `ends`, ends as cancelled.
    case 'alive': {
      gates.reached.add('beats');
      const beat = setInterval(() => context.heartbeat('alive'), 50);
      const cancellation = context.cancelled.catch((error: unknown) => error);
      const reason = await Promise.race([cancellation, gates.waitForOpen()]);
      clearInterval(beat);
      if (word === 'ends') throw reason as Error;
      return;
    }
    case 'fail':
      throw ApplicationFailure.create({
        message: word,
        ...(againMs && { nextRetryDelay: Number(againMs) }),
        ...(details && { details: [details] }),
      });
    default:
  }
}
