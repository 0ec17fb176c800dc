import { randomUUID } from 'node:crypto';
import type { TurnPlan } from '../../../sandbox';
import type { FollowUpCaller } from '../../harness/following';

type Environment = Pick<FollowUpCaller, 'sandbox'>;

/** What a line of `--json` holds: of an item, or of the whole at the end. */
export interface JsonLine {
  readonly workflowId?: string;
  readonly jobId?: string;
  readonly outcome?: string;
  readonly settledAt?: string;
  readonly state?: string;
  readonly summary?: Readonly<Record<string, unknown>> | null;
}

export function jsonLines(text: string): JsonLine[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as JsonLine);
}

/** The input of a batch to jobs of its own. */
export class BatchFile {
  readonly batchId = `batch-${randomUUID().slice(0, 8)}`;
  readonly lines: { project: string; job: string; prompt: string }[] = [];

  constructor(readonly environment: Environment) {}

  /** Adds a job and a line to it. @param turn null for one that ends only when the test says so */
  add(turn: TurnPlan | null = { durationMs: 300 }, prompt = 'Rebase on main.', project = this.batchId) {
    const { projectId, jobId } = this.environment.sandbox.addJob({
      projectId: project,
      turn: turn ?? { durationMs: null },
    });
    this.lines.push({ project: projectId, job: jobId, prompt });
    return { projectId, jobId };
  }

  /** Adds so many. */
  addMany(count: number, turn?: TurnPlan | null) {
    return Array.from({ length: count }, () => this.add(turn));
  }

  /** A line to a job that the service does not know. */
  addNobody(): void {
    this.lines.push({ project: this.batchId, job: 'nobody', prompt: 'Rebase on main.' });
  }

  get jsonl(): string {
    return this.lines.map((line) => JSON.stringify(line) + '\n').join('');
  }

  /** As a spreadsheet writes it: a byte order mark, CRLF, quotes. */
  get csv(): string {
    const cells = this.lines.map(({ project, job, prompt }) => [
      project,
      job,
      `"${prompt.replaceAll('"', '""')}"`,
    ]);
    return '\ufeff' + [['project', 'job', 'prompt'], ...cells].map((row) => row.join(',') + '\r\n').join('');
  }

  posts() {
    const { journal } = this.environment.sandbox;
    return journal.entries({ operation: 'message' }).filter(({ projectId }) => projectId === this.batchId);
  }

  /** Waits until so many messages were processed. */
  async sent(messages: number): Promise<void> {
    const processed = { projectId: this.batchId, operation: 'message', processed: true } as const;
    await this.environment.sandbox.journal.waitFor(processed, { atLeast: messages });
  }

  /** Ends the turn of every job, as far as one is at work. */
  endTurns(): void {
    for (const { project, job } of this.lines) {
      this.environment.sandbox.changeJob({ projectId: project, jobId: job }, { status: 'completed' });
    }
  }
}
