import type { FollowUpRequest } from '../../../src/core/request';
import { FollowUpClient } from '../../../src/client';
import type { ProcessEnvironment } from '../../harness/process-environment';
import { throughRestarts } from '../restartable-server';
import { TIMES } from './batch-files';
import { endOf } from './oracle';

/** Without `BUFFER_ALL`, whose backlog would outlast the soak. */
const OVERLAPS = ['SKIP', 'BUFFER_ONE', 'ALLOW_ALL', 'CANCEL_OTHER', 'TERMINATE_OTHER'] as const;

const ITEMS = 2;

/** Less than a turn takes. */
const EVERY = '3s';

/** Schedules of a soak, one for each way to treat an overlap, that fire before the last batch has ended. */
export class Schedules {
  private readonly client: FollowUpClient;
  private readonly requests: FollowUpRequest[] = [];

  constructor(private readonly environment: ProcessEnvironment) {
    this.client = new FollowUpClient(environment.client, { taskQueue: environment.taskQueue });
  }

  async create(): Promise<void> {
    for (const overlap of OVERLAPS) {
      const items = Array.from({ length: ITEMS }, (_, index): FollowUpRequest => {
        const { jobId, projectId } = this.environment.sandbox.addJob({
          projectId: `scheduled-${overlap}`,
          turn: { durationMs: 4_000 },
        });
        return { projectId, jobId, prompt: `Item ${index}.`, ...TIMES };
      });
      this.requests.push(...items);
      await this.client.schedules.create(idOf(overlap), items, {
        spec: { intervals: [{ every: EVERY }] },
        policies: { overlap },
      });
    }
  }

  async delete(): Promise<void> {
    for (const overlap of OVERLAPS) {
      await throughRestarts(() => this.environment.client.schedule.getHandle(idOf(overlap)).delete());
    }
  }

  /**
   * What is wrong, once all their follow-ups have ended. The service can't tell which of them a message was from, so a
   * job's messages are held against the ends of all follow-ups to it. An end that another one's turn may have confirmed
   * proves nothing here.
   *
   * @returns how many follow-ups there were as well
   */
  async lies(): Promise<{ readonly followUps: number; readonly found: readonly string[] }> {
    const found: string[] = [];
    let followUps = 0;
    for (const { projectId, jobId } of this.requests) {
      let [least, most] = [0, 0];
      for (const workflowId of await this.workflowIds(jobId)) {
        const end = await endOf(this.environment.client, workflowId);
        const delivery = end.kind === 'other' ? undefined : end.receipt?.delivery;
        if (delivery?.verdict === 'accepted' && delivery.confirmedBy === 'response') least += 1;
        if (delivery?.verdict !== 'not-sent' && delivery?.verdict !== 'rejected') most += 1;
        followUps += 1;
      }
      const { journal } = this.environment.sandbox;
      const processed = journal.entries({ projectId, jobId, operation: 'message', processed: true }).length;
      if (processed < least || processed > most)
        found.push(
          `${projectId} ${jobId}: processed ${processed} times, by its ends ${least} to ${most} times`,
        );
    }
    return { followUps, found };
  }

  private async workflowIds(jobId: string): Promise<string[]> {
    const ids: string[] = [];
    for await (const { workflowId } of this.client.list({ jobId })) ids.push(workflowId);
    return ids;
  }
}

function idOf(overlap: (typeof OVERLAPS)[number]): string {
  return `soak-${overlap}`;
}
