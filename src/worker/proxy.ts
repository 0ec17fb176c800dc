import type { Proxy } from '../agent-api/connections';
import type { Environment } from './variables';

const FORM =
  'give http://host:port or https://host:port, with user:password@ before the host if the proxy asks for them';

/**
 * The proxy for the agent service, from `HTTPS_PROXY` and `NO_PROXY`. As everywhere, the name in lower case counts first, and a
 * host without a scheme means http. It is for https base URLs.
 *
 * @returns undefined where none is set; or the problem, which does not show the value, because it may hold a password
 */
export function loadProxy(env: Environment): Proxy | undefined | { problem: string } {
  const text = variable(env, 'HTTPS_PROXY');
  if (text === undefined) return undefined;
  const address = text.includes('://') ? text : `http://${text}`;
  if (!URL.canParse(address)) return { problem: `HTTPS_PROXY: is not a URL; ${FORM}` };
  const url = new URL(address);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return { problem: `HTTPS_PROXY: has the scheme ${url.protocol}//, which is not supported; ${FORM}` };
  }
  if (decoded(url.username) === undefined || decoded(url.password) === undefined) {
    return {
      problem: `HTTPS_PROXY: has a user or password with a lone %, which must be written as %25; ${FORM}`,
    };
  }
  return { url: url.href, noProxy: variable(env, 'NO_PROXY') ?? '' };
}

/** The secrets of a proxy's URL, as it writes them and as the proxy reads them. */
export function proxySecrets({ url }: Proxy): string[] {
  const { password } = new URL(url);
  return password === '' ? [] : [password, decoded(password) ?? ''];
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function variable(env: Environment, name: string): string | undefined {
  return [env[name.toLowerCase()], env[name]]
    .map((value) => value?.trim())
    .find((value) => value !== undefined && value !== '');
}
