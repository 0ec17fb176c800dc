/**
 * This file has all uses of private parts of the SDK, and the requests about pending activities and pollers, for which the SDK has
 * no method. A table in docs/architecture.md lists the missing features. For most of them, test/temporal/sdk-features.test.ts fails
 * as soon as the SDK has the feature. The table shows the features without a test.
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
import { InternalWorkflowStartOptionsSymbol } from '@temporalio/client/lib/internal';
import { decodeFromPayloadsAtIndex } from '@temporalio/common/lib/internal-non-workflow';
import { optionalTsToDate } from '@temporalio/common/lib/time';
import { tomlLoadClientConfigProfile } from '@temporalio/envconfig/lib/envconfig-toml';
import type { JsonObject } from '../contract/checks';
import { findGrpcError } from './grpc-status';
import { readProtoField } from './proto-field';
import { StoppableRetries } from './stoppable-retries';

/** Converts the protobuf timestamps of raw responses. The SDK has this conversion for internal use only. */
export { optionalTsToDate } from '@temporalio/common/lib/time';

type Service = Client['workflowService'];
type TaskQueueType = NonNullable<Parameters<Service['describeTaskQueue']>[0]['taskQueueType']>;

/** Enum values of Temporal's API. The package of the API is only a development dependency of this project. */
const WORKFLOW_TASKS = 1 as unknown as TaskQueueType;
const PENDING_ACTIVITY_STARTED = 2;

/**
 * The worker option for the timeout of one workflow activation. The SDK's type does not have this option. An activation takes
 * milliseconds. The SDK's default is 5 s of wall-clock time, which also passes while the process gets no CPU time.
 */
export const ACTIVATION_TIMEOUT = { isolateExecutionTimeout: 60_000 };

/**
 * Returns start options with which repeated starts create only one run.
 *
 * @param startRequestId Temporal's own request ID of the start call, which is not the `requestId` of a follow-up
 */
export function startOnceOptions(startRequestId: string): object {
  return { [InternalWorkflowStartOptionsSymbol]: { requestId: startRequestId } };
}

/**
 * Returns the profile of `temporal.toml` with the overrides of the variables, in the form of the file. The SDK's public function drops
 * the fields `codec` and `tls.disable_host_verification`, so that a program can't report that it does not obey them.
 */
export function loadRawProfile(variables: Readonly<Record<string, string>>): JsonObject {
  return { ...tomlLoadClientConfigProfile({ overrideEnvVars: { ...variables } }) };
}

type Decoding = Parameters<typeof decodeFromPayloadsAtIndex>;

/**
 * Decodes the first payload of a raw response in the same way as the SDK's client. The codec receives the context, because each
 * workflow may have its own key.
 *
 * @param activityId undefined for a payload of the workflow itself
 */
export function decodeFirstPayload(
  { options }: Client,
  payloads: Decoding[2],
  workflowId: string,
  activityId?: string | null,
) {
  const { namespace, loadedDataConverter } = options;
  const context: Decoding[3] =
    activityId === undefined
      ? { type: 'workflow', namespace, workflowId }
      : toSerializationContext({
          namespace,
          activityId: activityId ?? '',
          workflowExecution: { workflowId },
        });
  return decodeFromPayloadsAtIndex<unknown>(loadedDataConverter, 0, payloads, context);
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
    ({ lastAccessTime }) => Number(optionalTsToDate(lastAccessTime)) > expiredBefore,
  );
  return [...new Set(activePollers.map(({ identity }) => readProtoField(identity) ?? 'unnamed'))];
}

/** The source text of the SDK's retry interceptor, which is the same for every interceptor that the SDK makes. */
const RETRY_INTERCEPTOR_TEXT = String(makeGrpcRetryInterceptor(defaultGrpcRetryOptions()));

/** The retries of each gRPC client. Several connection objects can share one gRPC client. */
const retriesByGrpcClient = new WeakMap<object, StoppableRetries>();

/** The properties of a connection that have credentials, or functions that return them. */
const PRIVATE_PROPERTIES = ['options', 'client', 'apiKeyFnRef', 'callContextStorage'];

/** A connection whose retries end when the signal of a call is aborted. A logged connection shows no credentials. */
export class StoppableConnection extends Connection {
  protected constructor(options: ConnectionCtorOptions) {
    super(options);
    for (const name of PRIVATE_PROPERTIES) Object.defineProperty(this, name, { enumerable: false });
  }

  /** Returns a connection that connects with its first request. */
  static open(options: ConnectionOptions): StoppableConnection {
    return new this(this.createCtorOptions(options));
  }

  /** Returns a connection that uses the channel, the credentials and the other interceptors of an existing connection. */
  static share(connection: Connection): StoppableConnection {
    if (connection instanceof StoppableConnection) return connection;
    const existing = connection as unknown as ConnectionCtorOptions;
    const { options, client, callContextStorage, apiKeyFnRef } = existing;
    const interceptors = options.interceptors.filter((each) => String(each) !== RETRY_INTERCEPTOR_TEXT);
    const staticMetadata = options.metadata;
    const createRpc = (serviceName: string) =>
      this.generateRPCImplementation({
        ...{ serviceName, client, callContextStorage, interceptors, staticMetadata, apiKeyFnRef },
      });
    return new this({
      ...{ client, callContextStorage, apiKeyFnRef },
      testService: connection.testService,
      healthService: connection.healthService,
      // The plugins of the existing connection have already changed its options.
      options: { ...options, plugins: [] },
      workflowService: WorkflowService.create(createRpc('temporal.api.workflowservice.v1.WorkflowService')),
      operatorService: OperatorService.create(createRpc('temporal.api.operatorservice.v1.OperatorService')),
    });
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

/** Returns a client that sends its requests with a {@link StoppableConnection}. Other kinds of connections are used as they are. */
export function toStoppableClient(client: Client): Client {
  const { connection, options } = client;
  if (!(connection instanceof Connection) || connection instanceof StoppableConnection) return client;
  const { identity, namespace, interceptors, workflow, loadedDataConverter: dataConverter } = options;
  const shared = StoppableConnection.share(connection);
  return new Client({ identity, namespace, interceptors, workflow, dataConverter, connection: shared });
}
