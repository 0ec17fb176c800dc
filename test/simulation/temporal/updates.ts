import type { EventBody, Failure, Payload, ServerCommand, UpdateRequest } from './history';

export const COMPLETED = 'workflow execution already completed';

/** How an update ends for the client that requested it. `aborted`: its workflow task failed, or the workflow is closed. */
export type UpdateEnd =
  | { readonly kind: 'answered'; readonly result: Payload | undefined }
  /** `rejected`: its validator rejected the update. `failed`: its handler failed, possibly after it had an effect. */
  | { readonly kind: 'rejected' | 'failed'; readonly failure: Failure }
  | { readonly kind: 'aborted'; readonly reason: 'the workflow task failed' | typeof COMPLETED };

export interface Update extends UpdateRequest {
  state: 'admitted' | 'delivered' | 'accepted';
  readonly settle: (end: UpdateEnd) => void;
}

/** The updates of a run that have not ended. */
export class Updates {
  private readonly all = new Map<string, Update>();

  admit(request: UpdateRequest): Promise<UpdateEnd> {
    return new Promise((settle) => {
      this.all.set(request.updateId, { ...request, state: 'admitted', settle });
    });
  }

  thatAre(...states: readonly Update['state'][]): Update[] {
    return [...this.all.values()].filter(({ state }) => states.includes(state));
  }

  /** Applies the command of a workflow task to an update. @returns the event for the history; undefined if the update leaves no event */
  applyCommand(command: Extract<ServerCommand, { readonly updateId: string }>): EventBody | undefined {
    const { type, updateId } = command;
    if (type === 'UpdateRejected') {
      this.settle(updateId, { kind: 'rejected', failure: command.failure });
      return undefined;
    }
    if (type === 'WorkflowExecutionUpdateCompleted') {
      const { failure, result } = command;
      this.settle(updateId, failure ? { kind: 'failed', failure } : { kind: 'answered', result });
      return command;
    }
    const update = this.all.get(updateId);
    if (update !== undefined) update.state = 'accepted';
    return update && { ...command, name: update.name, input: update.input };
  }

  private settle(updateId: string, end: UpdateEnd): void {
    const update = this.all.get(updateId);
    this.all.delete(updateId);
    update?.settle(end);
  }

  abort(
    reason: Extract<UpdateEnd, { kind: 'aborted' }>['reason'],
    ...states: readonly Update['state'][]
  ): void {
    for (const { updateId } of this.thatAre(...states)) this.settle(updateId, { kind: 'aborted', reason });
  }
}
