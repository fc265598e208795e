/** One PostgreSQL for the whole run; grows with the embedded adapter. */
export default function setup(): void {}
