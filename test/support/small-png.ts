import { deflateSync, inflateSync } from "node:zlib";

/**
 * Converts a screenshot with few colours to a PNG with a palette: a third of the size, without a visible difference.
 * Reads the PNGs that browsers write: eight bits per channel, with or without alpha, not interlaced.
 */
export function smallPng(png: Buffer): Buffer {
  const chunks = chunksOf(png);
  const header = chunks.find(({ type }) => type === "IHDR")?.data;
  if (header === undefined) throw new Error("this is no PNG");
  const [width, height, channels] = [header.readUInt32BE(0), header.readUInt32BE(4), header[9] === 6 ? 4 : 3];
  const packed = Buffer.concat(chunks.filter(({ type }) => type === "IDAT").map(({ data }) => data));
  const pixels = unfiltered(inflateSync(packed), width * channels, channels);
  const { palette, rows } = indexed(pixels, { width, height, channels });
  const head = Buffer.from(header);
  head[9] = 3;
  return Buffer.concat([
    png.subarray(0, 8),
    chunk("IHDR", head),
    chunk("PLTE", palette),
    chunk("IDAT", deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunksOf(png: Buffer) {
  const found: { type: string; data: Buffer }[] = [];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    found.push({ type: png.toString("latin1", at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return found;
}

/** Undoes PNG's row filters, which encode each row by its left and upper neighbours. */
function unfiltered(data: Buffer, stride: number, step: number): Buffer {
  const rows = data.length / (stride + 1);
  const out = Buffer.alloc(rows * stride);
  for (let row = 0; row < rows; row++) {
    const filter = data[row * (stride + 1)] ?? 0;
    for (let at = 0; at < stride; at++) {
      const place = row * stride + at;
      const left = at < step ? 0 : (out[place - step] ?? 0);
      const up = row === 0 ? 0 : (out[place - stride] ?? 0);
      const corner = at < step || row === 0 ? 0 : (out[place - stride - step] ?? 0);
      out[place] = (data[row * (stride + 1) + 1 + at] ?? 0) + predicted(filter, left, up, corner);
    }
  }
  return out;
}

function predicted(filter: number, left: number, up: number, corner: number): number {
  if (filter === 4) return paeth(left, up, corner);
  return [0, left, up, (left + up) >> 1][filter] ?? 0;
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}

interface Shape {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
}

const FREQUENT = 60;
const APART = 24;

/**
 * Maps pixels to a palette. The palette has the most frequent colours and those that differ most from them; every other
 * colour is replaced by the nearest colour of the palette.
 */
function indexed(pixels: Buffer, { width, height, channels }: Shape) {
  const counts = new Map<number, number>();
  const colourAt = (at: number) => pixels.readUIntBE(at, 3);
  for (let at = 0; at < pixels.length; at += channels) {
    const colour = colourAt(at);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const colours = chosen(counts);
  const places = new Map(colours.map((colour, index) => [colour, index]));
  for (const colour of counts.keys()) if (!places.has(colour)) places.set(colour, nearest(colour, colours));
  const rows = Buffer.alloc((width + 1) * height);
  for (let pixel = 0; pixel < width * height; pixel++) {
    const place = places.get(colourAt(pixel * channels)) ?? 0;
    rows[pixel + Math.floor(pixel / width) + 1] = place;
  }
  const palette = Buffer.alloc(colours.length * 3);
  for (const [index, colour] of colours.entries()) palette.writeUIntBE(colour, index * 3, 3);
  return { palette, rows };
}

/** Chooses the palette. It must include the colours of links and marks, which have few pixels but carry meaning. */
function chosen(counts: ReadonlyMap<number, number>): readonly number[] {
  const ranked = [...counts].sort(([, a], [, b]) => b - a);
  const colours = ranked.slice(0, FREQUENT).map(([colour]) => colour);
  const rest = ranked.slice(FREQUENT).map(([colour, count]) => {
    return { colour, weight: Math.sqrt(count), gap: away(colour, colours[nearest(colour, colours)] ?? 0) };
  });
  for (let more = 0; more < APART && rest.length > 0; more++) {
    const worst = rest.reduce((a, b) => (b.gap * b.weight > a.gap * a.weight ? b : a));
    colours.push(worst.colour);
    for (const each of rest) each.gap = Math.min(each.gap, away(each.colour, worst.colour));
  }
  return colours;
}

function away(colour: number, other: number): number {
  return [16, 8, 0].reduce((sum, shift) => sum + (((colour >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);
}

function nearest(colour: number, colours: readonly number[]): number {
  return colours.reduce(
    (best, other, index) => (away(colour, other) < away(colour, colours[best] ?? 0) ? index : best),
    0,
  );
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const whole = Buffer.alloc(body.length + 8);
  whole.writeUInt32BE(data.length, 0);
  body.copy(whole, 4);
  whole.writeUInt32BE(crc(body), body.length + 4);
  return whole;
}

/** CRC-32, as defined in the PNG specification. */
function crc(data: Buffer): number {
  let value = 0xffffffff;
  for (const byte of data) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  }
  return (value ^ 0xffffffff) >>> 0;
}
