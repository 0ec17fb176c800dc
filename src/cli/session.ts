import path from 'node:path';
import { FollowUpClient } from '../client';
import { DEFAULT_TASK_QUEUES } from '../core/names';
import { EXIT } from './exit-codes';
import type { Output } from './render/output';

/** What every command needs: the environment, the output, and a connection that is made on first use. */
export class Session {
  /** What the process ends with. */
  exitCode: number = EXIT.completed;

  private connected: Promise<FollowUpClient> | undefined;

  constructor(
    readonly output: Output,
    /** What `-` reads. */
    readonly stdin: AsyncIterable<Uint8Array>,
    readonly env: Readonly<Record<string, string | undefined>>,
    /** How the user calls the starter, for the commands in our hints. */
    private readonly calledAs: string,
  ) {}

  get taskQueue(): string {
    return this.variable('FOLLOW_UP_TASK_QUEUE') ?? DEFAULT_TASK_QUEUES.followUp;
  }

  connect(): Promise<FollowUpClient> {
    this.connected ??= FollowUpClient.connect({
      env: this.env,
      taskQueue: this.taskQueue,
      readTaskQueue: this.variable('AGENT_API_TASK_QUEUE') ?? DEFAULT_TASK_QUEUES.agentApi,
      sendTaskQueue: this.variable('AGENT_API_SEND_TASK_QUEUE') ?? DEFAULT_TASK_QUEUES.agentApiSend,
    });
    return this.connected;
  }

  /** A variable of the environment; an empty one counts as not set, as for the worker. */
  private variable(name: string): string | undefined {
    const value = this.env[name]?.trim();
    return value === '' ? undefined : value;
  }

  /** A command line of the starter, to be copied. */
  command(...words: string[]): string {
    return [this.calledAs, ...words.map(shellWord)].join(' ');
  }

  /** The page of a follow-up in Temporal's Web UI; undefined if TEMPORAL_UI_URL is not set. */
  async webUiPage(workflowId: string): Promise<string | undefined> {
    const base = this.env.TEMPORAL_UI_URL?.trim().replace(/\/+$/, '');
    if (!base) return undefined;
    const { namespace } = await this.connect();
    return `${base}/namespaces/${encodeURIComponent(namespace)}/workflows/${encodeURIComponent(workflowId)}`;
  }

  async close(): Promise<void> {
    const client = await this.connected?.catch(() => undefined);
    await client?.close();
  }
}

/**
 * How the user calls the starter: by the name of its bin, by npm from a checkout, else by its path.
 *
 * @param isCheckout whether npm has a script for it, as it has not in the worker's artefact
 */
export function callName(scriptPath: string | undefined, isCheckout: boolean): string {
  if (/(^|[/\\])agent-follow-up$/.test(scriptPath ?? '')) return 'agent-follow-up';
  if (isCheckout || scriptPath === undefined) return 'npm run starter --';
  const fromHere = path.relative('', scriptPath);
  return `node ${shellWord(fromHere.startsWith('..') ? scriptPath : fromHere)}`;
}

function shellWord(word: string): string {
  return /^[\w%+,./:=@~-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
