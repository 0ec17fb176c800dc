/** Where a server of this process listens. */
export interface ListenAddress {
  /** A name or an IP address, without the brackets of IPv6. */
  readonly host: string;
  readonly port: number;
}

const FORM = 'give host:port (127.0.0.1:9465, [::1]:9465) or off';

/** The address in `text`, `off`, or the reason why it is neither. Port 0 is the system's choice. */
export function parseListenAddress(text: string): ListenAddress | 'off' | { problem: string } {
  if (text.toLowerCase() === 'off') return 'off';
  const match = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+)):(\d+)$/i.exec(text);
  if (match === null) {
    if (/^\d+$/.test(text)) return { problem: `is a port without a host; ${FORM}` };
    if (/^[a-z0-9.-]+$/i.test(text)) return { problem: `has no port; ${FORM}` };
    if (/^[0-9a-f]*:[0-9a-f:]*$/i.test(text))
      return { problem: `is an IPv6 address without brackets; ${FORM}` };
    return { problem: `is not an address; ${FORM}` };
  }
  const port = Number(match[3]);
  if (port > 65_535) return { problem: `has a port above 65535; ${FORM}` };
  return { host: match[1] ?? match[2] ?? '', port };
}

/** As a person or Prometheus writes it: `127.0.0.1:9465`, `[::1]:9465`. */
export function formatListenAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
