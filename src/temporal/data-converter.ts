import { createRequire } from 'node:module';
import path from 'node:path';
import type { DataConverter } from '@temporalio/common';

const VARIABLE = 'FOLLOW_UP_DATA_CONVERTER';

const EXPORTS =
  'export a DataConverter of @temporalio/common, or a promise of one, as "dataConverter" or as default';

/**
 * The data converter that `FOLLOW_UP_DATA_CONVERTER` names: a JavaScript module, relative to the working directory. Worker and
 * starter read the same one, or they can't read each other's payloads.
 *
 * @returns undefined where the variable is not set; or the problem
 */
export async function loadDataConverter(
  env: Readonly<Record<string, string | undefined>>,
): Promise<DataConverter | undefined | { problem: string }> {
  const given = env[VARIABLE]?.trim();
  if (given === undefined || given === '') return undefined;
  const file = path.resolve(given);
  try {
    // Node 20.19 and newer require ES modules too.
    const loaded = createRequire(file)(file) as { dataConverter?: unknown; default?: unknown };
    const converter: unknown = await (loaded.dataConverter ?? loaded.default);
    return isDataConverter(converter) ? converter : { problem: `${VARIABLE}: ${file} must ${EXPORTS}` };
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : String(error);
    return {
      problem: `${VARIABLE}: ${file} can't be loaded (${reason}); give the path of a JavaScript module`,
    };
  }
}

/** Whether the SDK would use something of it: it ignores whatever else an object holds. */
function isDataConverter(value: unknown): value is DataConverter {
  if (typeof value !== 'object' || value === null) return false;
  const { payloadConverterPath, failureConverterPath, payloadCodecs } = value as Readonly<
    Record<string, unknown>
  >;
  const paths = [payloadConverterPath, failureConverterPath].filter((each) => each !== undefined);
  if (!paths.every((each) => typeof each === 'string')) return false;
  if (payloadCodecs === undefined) return paths.length > 0;
  return Array.isArray(payloadCodecs) && payloadCodecs.every(isCodec);
}

function isCodec(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { encode, decode } = value as Readonly<Record<string, unknown>>;
  return typeof encode === 'function' && typeof decode === 'function';
}
