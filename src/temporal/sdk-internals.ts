/**
 * This file has all uses of private parts of the SDK. Another version of the SDK can lack them: then a warning states the effect,
 * and every other feature works. A table in docs/architecture.md lists, for each of these uses, the public feature that the SDK
 * lacks.
 */
import {
  type Client,
  Connection,
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
  OperatorService,
  WorkflowService,
} from '@temporalio/client';
import type { ConnectionCtorOptions, RPCImplOptions } from '@temporalio/client/lib/connection';
import { isRecord } from '../contract/checks';
import { withConnection } from './raw-requests';
import { StoppableRetries } from './stoppable-retries';

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
    "The SDK's default timeout for the code of a workflow task (5 s) is used, so tasks can fail and be repeated on a busy machine.";
  reportMissingPart('worker option isolateExecutionTimeout', effect);
}

/** The source text of the SDK's retry interceptor, which is the same for every interceptor that the SDK makes. */
const RETRY_INTERCEPTOR_TEXT = String(makeGrpcRetryInterceptor(defaultGrpcRetryOptions()));

/** The retries of each gRPC client. Several connection objects can share one gRPC client. */
const retriesByGrpcClient = new WeakMap<object, StoppableRetries>();

/** The private properties of a connection that {@link StoppableConnection} needs, and its private function. */
const PROPERTIES = ['client', 'callContextStorage', 'apiKeyFnRef'] as const;
const FUNCTION = 'generateRPCImplementation';

function findMissingPart(connection: Connection): string | undefined {
  const parts = connection as unknown as ConnectionCtorOptions;
  return PROPERTIES.find((name) => !isRecord(parts[name]));
}

/** A connection whose retries end when the signal of a call is aborted. A logged connection shows no credentials. */
export class StoppableConnection extends Connection {
  /** Returns a connection that connects with its first request. If the SDK lacks a private part, the connection retries no request. */
  static open(options: ConnectionOptions): Connection & { readonly retries?: StoppableRetries | undefined } {
    const connection: Connection & { retries?: StoppableRetries | undefined } = this.lazy(options);
    hideProperties(connection);
    if (connection.retries === undefined) {
      const effect =
        'FollowUpClient.connect() therefore repeats no request: a call fails as soon as the Temporal server is unreachable.';
      reportMissingPart(`Connection.${findMissingPart(connection) ?? FUNCTION}`, effect);
    }
    return connection;
  }

  /**
   * Returns a connection that uses the channel, the credentials and the other interceptors of an existing connection. If the SDK
   * lacks a private part, returns the existing connection.
   */
  static share(connection: Connection): Connection {
    if (connection instanceof StoppableConnection) return connection;
    const missingPart = findMissingPart(connection);
    const shared =
      missingPart === undefined ? this.fromParts(connection as unknown as ConnectionCtorOptions) : undefined;
    if (shared?.retries !== undefined) return shared;
    const effect =
      "A FollowUpClient therefore uses the SDK's own retries on your Client's connection: after an aborted call, wait for one minute " +
      'before you close the connection, because a retry on a closed connection ends the process.';
    reportMissingPart(`Connection.${missingPart ?? FUNCTION}`, effect);
    return connection;
  }

  /** Returns undefined if the private parts have another form. */
  private static fromParts(parts: ConnectionCtorOptions): StoppableConnection | undefined {
    try {
      const shared = this.copyParts(parts);
      const service: { readonly startWorkflowExecution?: unknown } | undefined = shared?.workflowService;
      return typeof service?.startWorkflowExecution === 'function' ? shared : undefined;
    } catch {
      return undefined;
    }
  }

  private static copyParts(parts: ConnectionCtorOptions): StoppableConnection | undefined {
    const { options, client, callContextStorage, apiKeyFnRef, testService, healthService } = parts;
    const interceptors = options.interceptors.filter((each) => String(each) !== RETRY_INTERCEPTOR_TEXT);
    const staticMetadata = options.metadata;
    const createRpc = (serviceName: string) =>
      this.generateRPCImplementation({
        ...{ serviceName, client, callContextStorage, interceptors, staticMetadata, apiKeyFnRef },
      });
    if (typeof Connection[FUNCTION] !== 'function') return undefined;
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
    if (!isRecord(client) || !isRecord(callContextStorage)) return super.generateRPCImplementation(options);
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
