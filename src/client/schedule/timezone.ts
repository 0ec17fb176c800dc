import { nearest } from '../../contract/nearest';

/**
 * Reads the name of a time zone. The server has a list of its own, which may be older or newer than ours.
 *
 * @returns the name as IANA writes it
 */
export function parseTimezone(text: string): string | { readonly problem: string } {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions();
    // Intl takes offsets, and names in any case; the server takes neither.
    if (!/^[+-]/.test(text)) return timeZone.toLowerCase() === text.toLowerCase() ? timeZone : text;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  const meant = nearest(text, Intl.supportedValuesOf('timeZone'));
  const hint = meant === undefined ? '' : `; did you mean ${meant}?`;
  return {
    problem: `${JSON.stringify(text.slice(0, 40))} is no IANA name of a time zone, such as "Europe/Berlin" or "UTC"${hint}`,
  };
}

/** The time zone of a schedule that is there; the server leaves out what is empty. */
export function timezoneOf(spec: { readonly timezone?: string } | undefined): string {
  const { timezone = '' } = spec ?? {};
  return timezone === '' ? 'UTC' : timezone;
}
