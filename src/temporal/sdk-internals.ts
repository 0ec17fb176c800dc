/**
 * This file has all uses of private parts of the SDK, and replacements of methods that the SDK lacks. A private part can be missing in
 * another version of the SDK: then a warning states the effect, and every other feature works. A table in docs/architecture.md lists
 * the missing features. For most of them, test/temporal/sdk-features.test.ts fails as soon as the SDK has the feature. The table
 * shows the features without a test.
 */
import {
  Client,
  Connection,
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  OperatorService,
  type WorkflowExecutionDescription,
  WorkflowService,
} from '@temporalio/client';
import type { ConnectionCtorOptions, RPCImplOptions } from '@temporalio/client/lib/connection';
import type { PayloadCodec } from '@temporalio/common';
import { isRecord } from '../contract/checks';
import { findGrpcError } from './grpc-status';
import { readProtoField, toDate } from './proto-field';
import { StoppableRetries } from './stoppable-retries';

type Service = Client['workflowService'];
type TaskQueueType = NonNullable<Parameters<Service['describeTaskQueue']>[0]['taskQueueType']>;

/** Enum values of Temporal's API. The package of the API is only a development dependency of this project. */
const WORKFLOW_TASKS = 1 as unknown as TaskQueueType;
const PENDING_ACTIVITY_STARTED = 2;

const ADVICE = 'Install a version of this package that supports your version of the SDK.';
const reportedEffects = new Set<string>();

/** Reports once, as a warning of the process, that the SDK lacks a private part. @param effect a sentence */
function reportMissingPart(part: string, effect: string): void {
  if (reportedEffects.has(effect)) return;
  reportedEffects.add(effect);
  const code = 'FOLLOW_UP_SDK_PART_MISSING';
  process.emitWarning(`The Temporal SDK has no ${part}. ${effect} ${ADVICE}`, { code });
}

/**
 * The worker option for the timeout of one workflow activation. The SDK's type does not have this option. An activation takes
 * milliseconds. The SDK's default is 5 s of wall-clock time, which also passes while the process gets no CPU time.
 */
export const ACTIVATION_TIMEOUT = { isolateExecutionTimeout: 60_000 };

/** Reports if the SDK ignored {@link ACTIVATION_TIMEOUT}. @param options the options of a worker that the SDK created */
export function checkActivationTimeout(options: object): void {
  if ('isolateExecutionTimeoutMs' in options) return;
  const effect =
    "The SDK's default timeout of a workflow task's code is used (5 s), so that tasks can fail and be repeated on a busy machine.";
  reportMissingPart('worker option isolateExecutionTimeout', effect);
}

/**
 * Returns a client with which repeated starts create only one run, because all of its starts have the same request ID of Temporal.
 * The SDK's start options have no request ID, and the SDK draws another one for each start.
 *
 * @param startRequestId Temporal's own request ID of the start call, which is not the `requestId` of a follow-up
 */
export function withStartRequestId(client: Client, startRequestId: string): Client {
  const { connection } = client;
  const { workflowService } = connection;
  const start = (request: Parameters<Service['startWorkflowExecution']>[0]) =>
    workflowService.startWorkflowExecution({ ...request, requestId: startRequestId });
  const replaced = new Map<string | symbol, unknown>([
    ['workflowService', Object.create(workflowService, { startWorkflowExecution: { value: start } })],
    // The plugins of the connection have already changed the client's options.
    ['plugins', []],
  ]);
  const withRequestId = new Proxy(connection, {
    get: (target, name) => {
      const value: unknown = replaced.has(name) ? replaced.get(name) : Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  return withConnection(client, withRequestId);
}

/** Returns a client with the same options, except for the connection. */
function withConnection({ options }: Client, connection: Client['connection']): Client {
  const { identity, namespace, interceptors, workflow, loadedDataConverter: dataConverter } = options;
  return new Client({ identity, namespace, interceptors, workflow, dataConverter, connection });
}

/**
 * Decodes the first payload of a raw response in the same way as the SDK's client. The codec receives the context, because each
 * workflow may have its own key.
 *
 * @param activityId undefined for a payload of the workflow itself
 * @returns undefined if there is no payload
 */
export async function decodeFirstPayload(
  { options }: Client,
  payloads: Parameters<PayloadCodec['decode']>[0] | null | undefined,
  workflowId: string,
  activityId?: string | null,
): Promise<unknown> {
  if (!payloads?.length) return undefined;
  const { namespace, loadedDataConverter } = options;
  const { payloadCodecs, payloadConverter } = loadedDataConverter;
  const context =
    activityId === undefined
      ? ({ type: 'workflow', namespace, workflowId } as const)
      : toSerializationContext({
          namespace,
          activityId: activityId ?? '',
          workflowExecution: { workflowId },
        });
  let decoded = payloads;
  for (const codec of payloadCodecs.toReversed()) decoded = await codec.decode(decoded, context);
  const [first] = decoded;
  return first && payloadConverter.fromPayload(first, context);
}

/**
 * Returns the latest pending activity of a type, with the details of its latest heartbeat. Returns undefined if no activity of
 * the type is pending.
 *
 * The Temporal server lists activities in any order, and lists an abandoned activity until its worker receives the cancellation.
 * The latest activity has the highest ID, because activity IDs are consecutive numbers.
 */
export async function findPendingActivity(
  client: Client,
  { workflowId, raw }: Pick<WorkflowExecutionDescription, 'workflowId' | 'raw'>,
  type: string,
) {
  const pending = (raw.pendingActivities ?? [])
    .filter(({ activityType }) => activityType?.name === type)
    .sort((one, other) => Number(one.activityId) - Number(other.activityId))
    .at(-1);
  if (!pending) return undefined;
  const { heartbeatDetails, activityId = '', state } = pending;
  const details = await decodeFirstPayload(client, heartbeatDetails?.payloads, workflowId, activityId);
  return { ...pending, details, isStarted: Number(state) === PENDING_ACTIVITY_STARTED };
}

interface RunningActivity {
  readonly namespace: string;
  readonly activityId: string;
  readonly workflowExecution?: { readonly workflowId: string } | undefined;
}

/** Returns the context of an activity's payloads for the data converter. */
export function toSerializationContext({ namespace, workflowExecution, activityId }: RunningActivity) {
  const workflowId = workflowExecution?.workflowId ?? '';
  return { type: 'activity', namespace, workflowId, activityId, isLocal: false } as const;
}

/** Pauses a pending activity of a workflow, so that its next attempt does not start. */
export async function pauseActivity(
  { workflowService, options }: Client,
  execution: { readonly workflowId: string; readonly runId: string },
  id: string,
  reason: string,
): Promise<void> {
  const { namespace, identity } = options;
  await workflowService.pauseActivity({ namespace, execution, id, reason, identity });
}

/**
 * A poller without a poll for this time counts as stopped. A running poller polls at least once a minute, but the Temporal server
 * lists a poller for five minutes after its last poll.
 */
const POLLER_EXPIRY_MS = 90_000;

/**
 * Returns the identities of the workers that poll a workflow task queue.
 *
 * @returns null if the Temporal server rejects the call; no feature may depend on this call, because a gateway may reject it
 */
export async function listPollingWorkers(client: Client, taskQueue: string): Promise<string[] | null> {
  const request = {
    namespace: client.options.namespace,
    taskQueue: { name: taskQueue },
    taskQueueType: WORKFLOW_TASKS,
  };
  const describe = () => client.workflowService.describeTaskQueue(request);
  const response = await client.withDeadline(Date.now() + 5_000, describe).catch((error: unknown) => {
    if (findGrpcError(error) === undefined) throw error;
    return null;
  });
  if (response === null) return null;
  const { pollers } = response;
  const expiredBefore = Date.now() - POLLER_EXPIRY_MS;
  const activePollers = pollers.filter(
    ({ lastAccessTime }) => Number(toDate(lastAccessTime)) > expiredBefore,
  );
  return [...new Set(activePollers.map(({ identity }) => readProtoField(identity) ?? 'unnamed'))];
}

/** The source text of the SDK's retry interceptor, which is the same for every interceptor that the SDK makes. */
const RETRY_INTERCEPTOR_TEXT = String(makeGrpcRetryInterceptor(defaultGrpcRetryOptions()));

/** The retries of each gRPC client. Several connection objects can share one gRPC client. */
const retriesByGrpcClient = new WeakMap<object, StoppableRetries>();

/** A connection whose retries end when the signal of a call is aborted. A logged connection shows no credentials. */
export class StoppableConnection extends Connection {
  /** Returns a connection that connects with its first request. If the SDK lacks a private part, the connection retries no request. */
  static open(options: ConnectionOptions): Connection & { readonly retries?: StoppableRetries | undefined } {
    const connection: Connection & { retries?: StoppableRetries | undefined } = this.lazy(options);
    hideProperties(connection);
    if (connection.retries === undefined) {
      const effect =
        'FollowUpClient.connect() therefore repeats no request: a call fails as soon as the Temporal server is unreachable.';
      reportMissingPart('Connection.generateRPCImplementation', effect);
    }
    return connection;
  }

  /**
   * Returns a connection that uses the channel, the credentials and the other interceptors of an existing connection. If the SDK lacks
   * a private part, returns the existing connection.
   */
  static share(connection: Connection): Connection {
    if (connection instanceof StoppableConnection) return connection;
    const parts = connection as unknown as ConnectionCtorOptions;
    const missingPart = ['client', 'callContextStorage', 'apiKeyFnRef'].find(
      (name) => !isRecord(parts[name as keyof ConnectionCtorOptions]),
    );
    const shared = missingPart === undefined ? this.fromParts(parts) : undefined;
    if (shared?.retries !== undefined) return shared;
    const effect =
      "A FollowUpClient therefore uses the SDK's own retries on your Client's connection: after an aborted call, wait for one minute " +
      'before you close the connection, because a retry on a closed connection ends the process.';
    reportMissingPart(`Connection.${missingPart ?? 'generateRPCImplementation'}`, effect);
    return connection;
  }

  private static fromParts(parts: ConnectionCtorOptions): StoppableConnection | undefined {
    const { options, client, callContextStorage, apiKeyFnRef, testService, healthService } = parts;
    const interceptors = options.interceptors.filter((each) => String(each) !== RETRY_INTERCEPTOR_TEXT);
    const staticMetadata = options.metadata;
    const createRpc = (serviceName: string) =>
      this.generateRPCImplementation({
        ...{ serviceName, client, callContextStorage, interceptors, staticMetadata, apiKeyFnRef },
      });
    if (typeof Connection.generateRPCImplementation !== 'function') return undefined;
    const shared = new this({
      ...{ client, callContextStorage, apiKeyFnRef, testService, healthService },
      // The plugins of the existing connection have already changed its options.
      options: { ...options, plugins: [] },
      workflowService: WorkflowService.create(createRpc('temporal.api.workflowservice.v1.WorkflowService')),
      operatorService: OperatorService.create(createRpc('temporal.api.operatorservice.v1.OperatorService')),
    });
    hideProperties(shared);
    return shared;
  }

  protected static override generateRPCImplementation(
    options: RPCImplOptions,
  ): ReturnType<typeof Connection.generateRPCImplementation> {
    const { client, callContextStorage } = options;
    const retries = retriesByGrpcClient.get(client) ?? new StoppableRetries();
    retriesByGrpcClient.set(client, retries);
    return retries.wrap(super.generateRPCImplementation(options), callContextStorage);
  }

  get retries(): StoppableRetries | undefined {
    return retriesByGrpcClient.get(this.client);
  }

  override async close(): Promise<void> {
    this.retries?.stop();
    await super.close();
  }
}

/** Hides the properties of a connection from logs, because some of them have credentials or functions that return credentials. */
function hideProperties(connection: Connection): void {
  for (const name of Object.keys(connection)) Object.defineProperty(connection, name, { enumerable: false });
}

/** Returns a client that sends its requests with a {@link StoppableConnection}. Other kinds of connections are used as they are. */
export function toStoppableClient(client: Client): Client {
  const { connection } = client;
  if (!(connection instanceof Connection) || connection instanceof StoppableConnection) return client;
  const shared = StoppableConnection.share(connection);
  return shared === connection ? client : withConnection(client, shared);
}
