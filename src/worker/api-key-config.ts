import { ApiKeyError, type ApiKeySource, keyFromFile, keyFromText } from '../agent-api/api-key';
import { redact } from '../agent-api/redact';
import type { VariableName } from './variables';

export interface LoadedKey {
  readonly source: ApiKeySource;
  /** The key at the start of the process. */
  readonly first: string;
  /** Where it came from, for the log: the variable, and the path of the file. */
  readonly origin: string;
}

/** The agent service's key from exactly one of the two variables. */
export async function loadApiKey(
  set: Partial<Record<VariableName, string>>,
): Promise<LoadedKey | { problem: string }> {
  const { AGENT_API_KEY: text, AGENT_API_KEY_FILE: path } = set;
  if (text !== undefined && path !== undefined) {
    return {
      problem:
        'AGENT_API_KEY, AGENT_API_KEY_FILE: both are set, and which one counts would be a guess; unset one of them',
    };
  }
  try {
    if (text !== undefined) return await loaded(keyFromText(text), 'AGENT_API_KEY');
    if (path !== undefined) return await loaded(keyFromFile(path), `AGENT_API_KEY_FILE ${path}`);
  } catch (error) {
    if (!(error instanceof ApiKeyError)) throw error;
    return { problem: path === undefined ? `AGENT_API_KEY: ${error.message}` : fileProblem(error, path) };
  }
  return {
    problem:
      'AGENT_API_KEY: is not set; give the admin key of the agent service, or the path of a file that holds it in AGENT_API_KEY_FILE',
  };
}

async function loaded(source: ApiKeySource, origin: string): Promise<LoadedKey> {
  return { source, first: await source.current(), origin };
}

/** A "path" without a slash may be the key itself, put into the wrong variable: it is not shown. */
function fileProblem(error: ApiKeyError, path: string): string {
  const reason = path.startsWith('/') || path.startsWith('.') ? error.message : redact(error.message, [path]);
  return `AGENT_API_KEY_FILE: ${reason}; give the path of a readable file that holds the key and nothing else`;
}
