import { isIPv4 } from 'node:net';

/**
 * Checks `{base_url}` of the agent service. A path prefix and a trailing slash are fine.
 *
 * No problem shows the value itself: a key that was put into the wrong variable would be printed.
 *
 * @returns the URL and whether the key would travel in clear to another machine, or what is wrong with it.
 */
export function parseBaseUrl(text: string): { url: string; inClear: boolean } | { problem: string } {
  if (!URL.canParse(text)) {
    return {
      problem: 'is not a URL; give the base URL of the agent service, such as https://agents.example.com',
    };
  }
  const url = new URL(text);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return { problem: 'has a scheme that is not HTTP; the URL must begin with https:// or http://' };
  }
  if (url.username !== '' || url.password !== '') {
    return {
      problem: 'holds a user name or password; the key is given by AGENT_API_KEY or AGENT_API_KEY_FILE alone',
    };
  }
  // By the text, since the URL class reports a lone `?` or `#` as an empty one.
  if (text.includes('?'))
    return { problem: 'has a query (?…); the paths of the service are appended to it, so leave it out' };
  if (text.includes('#')) return { problem: 'has a fragment (#…), which is never sent; leave it out' };
  return { url: url.href, inClear: url.protocol === 'http:' && !isLoopback(url.hostname) };
}

/** RFC 6761 keeps `localhost` and names below it on this machine; so are 127.0.0.0/8 and ::1. */
function isLoopback(hostname: string): boolean {
  if (isIPv4(hostname)) return hostname.startsWith('127.');
  return hostname === 'localhost' || hostname.endsWith('.localhost') || hostname === '[::1]';
}
