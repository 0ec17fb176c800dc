import { type Client, WorkflowClient } from '@temporalio/client';
import type { DataConverter, PayloadCodec } from '@temporalio/common';
import { FOLLOW_UP_WORKFLOW, SEARCH_ATTRIBUTES, type SearchAttributeName } from '../core/names';
import { grpcError } from '../temporal/grpc-status';
import { registrationHelp, SearchAttributesError, keywordKey } from '../temporal/search-attributes';
import { descriptionOf, type FollowUpDescription } from './description';
import { attribute } from './start';

/** Which follow-ups to list; a field that is left out does not restrict the list. */
export interface FollowUpFilter {
  readonly phase?: string;
  readonly projectId?: string;
  readonly jobId?: string;
  /** Items of this batch. */
  readonly batchId?: string;
}

/** Descriptions that are fetched at once; the server's pages hold at most a thousand. */
const PAGE_SIZE = 100;

/**
 * Follow-ups of the namespace: first those that run, the newest first, then those that ended last. The list comes from
 * Temporal's visibility store, which is eventually consistent: a follow-up that was just started or has just moved on may
 * be missing or shown as it was.
 *
 * @throws SearchAttributesError when the namespace lacks an attribute that is asked for
 */
export async function* listFollowUps(
  client: Client,
  filter: FollowUpFilter,
): AsyncGenerator<FollowUpDescription, void, undefined> {
  const wanted = wantedAttributes(filter);
  try {
    for await (const info of undecodingClient(client).list({
      query: visibilityQuery(wanted),
      pageSize: PAGE_SIZE,
    })) {
      const attributes = info.typedSearchAttributes;
      if (wanted.every(([name, value]) => attributes.get(keywordKey(name)) === value))
        yield descriptionOf(info);
    }
  } catch (error) {
    throw inWords(error, client.options.namespace);
  }
}

function undecodingClient({ connection, options }: Client): WorkflowClient {
  return new WorkflowClient({
    connection,
    namespace: options.namespace,
    identity: options.identity,
    dataConverter: UNDECODED,
  });
}

type Wanted = readonly (readonly [name: SearchAttributeName, value: string])[];

function wantedAttributes({ phase, projectId, jobId, batchId }: FollowUpFilter): Wanted {
  const pairs: [SearchAttributeName, string | undefined][] = [
    ['FollowUpPhase', phase],
    ['AgentProject', projectId],
    ['AgentJob', jobId],
    ['FollowUpBatch', batchId],
  ];
  return pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name, attribute(value)] as const]));
}

/**
 * The visibility query, which may find too much but never too little: the caller compares.
 *
 * No way of writing a value matches anything when it holds a double quote, a backslash or a control character, or begins
 * or ends with a single quote (measured on the SQL visibility of server 1.31). Such a value is looked for by as much of
 * its beginning as can be written.
 */
export function visibilityQuery(wanted: Wanted, type: string = FOLLOW_UP_WORKFLOW): string {
  const clauses = wanted.map(([name, value]) => {
    const [plain = ''] = value.split(/["\\\p{Cc}]/u, 1);
    const prefix = plain.replace(/'+$/, '');
    if (prefix === '' || prefix.startsWith("'")) return `${name} IS NOT NULL`;
    return prefix === value ? `${name} = ${quote(value)}` : `${name} STARTS_WITH ${quote(prefix)}`;
  });
  return [`WorkflowType = ${quote(type)}`, ...clauses].join(' AND ');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function inWords(error: unknown, namespace: string): unknown {
  const refused = grpcError(error);
  if (refused?.status !== 'INVALID_ARGUMENT' || !/search attribute/i.test(refused.words)) return error;
  return new SearchAttributesError(
    `The namespace ${namespace} lacks search attributes that the list is made by (${refused.words}). ` +
      `Register them with the starter's command "setup", or run those of these that are missing:\n` +
      registrationHelp(namespace, SEARCH_ATTRIBUTES),
    { cause: error },
  );
}

const NOTHING = { metadata: { encoding: Buffer.from('binary/null') } };

const codec: PayloadCodec = {
  encode: (payloads) => Promise.resolve(payloads),
  decode: (payloads) => Promise.resolve(payloads.map(() => NOTHING)),
};

/**
 * For lists: it looks at no payload. A list needs no memo, and a single one that another service has encrypted would end
 * it.
 */
export const UNDECODED: DataConverter = { payloadCodecs: [codec] };
