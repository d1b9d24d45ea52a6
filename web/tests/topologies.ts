/** Fabrics to draw, as docs/fabric.md describes the named topologies; the page itself knows none of these names. */

export interface Topology {
  readonly name: string;
  readonly switches: number;
  readonly pairs: readonly (readonly [number, number])[];
  readonly withHosts: readonly boolean[];
}

type Pair = readonly [number, number];

function made(
  name: string,
  switches: number,
  pairs: readonly Pair[],
  withHosts: (place: number) => boolean = () => true,
): Topology {
  const once = new Map(
    pairs.map(([one, other]) => [`${Math.min(one, other)} ${Math.max(one, other)}`, [one, other] as const]),
  );
  return {
    name,
    switches,
    pairs: [...once.values()],
    withHosts: Array.from({ length: switches }, (_, place) => withHosts(place)),
  };
}

function coordinates(place: number, sizes: readonly number[]): number[] {
  let rest = place;
  return sizes.map((size) => {
    const at = rest % size;
    rest = Math.floor(rest / size);
    return at;
  });
}

/** Joins all switches whose coordinates differ in one dimension only, and there as `joined` says. */
function byCoordinates(
  name: string,
  sizes: readonly number[],
  joined: (one: number, other: number, size: number) => boolean,
): Topology {
  const switches = sizes.reduce((all, size) => all * size, 1);
  const at = Array.from({ length: switches }, (_, place) => coordinates(place, sizes));
  const pairs: Pair[] = [];
  for (let one = 0; one < switches; one += 1) {
    for (let other = one + 1; other < switches; other += 1) {
      const differ = sizes.flatMap((_, dimension) =>
        at[one]?.[dimension] === at[other]?.[dimension] ? [] : [dimension],
      );
      const [dimension] = differ;
      if (differ.length !== 1 || dimension === undefined) continue;
      if (joined(at[one]?.[dimension] ?? 0, at[other]?.[dimension] ?? 0, sizes[dimension] ?? 0))
        pairs.push([one, other]);
    }
  }
  return made(name, switches, pairs);
}

const near = (one: number, other: number): boolean => Math.abs(one - other) === 1;

export const mesh = (...sizes: number[]): Topology => byCoordinates(`mesh ${sizes.join("x")}`, sizes, near);
export const torus = (...sizes: number[]): Topology =>
  byCoordinates(
    `torus ${sizes.join("x")}`,
    sizes,
    (one, other, size) => near(one, other) || (size > 2 && Math.abs(one - other) === size - 1),
  );
export const hyperx = (...sizes: number[]): Topology => byCoordinates(`hyperx ${sizes.join("x")}`, sizes, () => true);
export const ring = (switches: number): Topology => ({ ...torus(switches), name: `ring ${switches}` });
export const complete = (switches: number): Topology => ({ ...hyperx(switches), name: `complete ${switches}` });

export function star(switches: number): Topology {
  return made(
    `star ${switches}`,
    switches,
    Array.from({ length: switches - 1 }, (_, at): Pair => [0, at + 1]),
  );
}

/** Fan-outs by level; one alone is a row with one more switch hanging from each. */
export function tree(...fanOuts: number[]): Topology {
  const pairs: Pair[] = [];
  let [begin, end] = [0, 1];
  for (const fanOut of fanOuts) {
    const below = end + (end - begin) * fanOut;
    for (let child = end; child < below; child += 1) pairs.push([begin + Math.floor((child - end) / fanOut), child]);
    [begin, end] = [end, below];
  }
  return made(`tree ${fanOuts.join(",")}`, end, pairs, (place) => place >= begin);
}

export function caterpillar(switches: number): Topology {
  const row = Math.ceil(switches / 2);
  const pairs: Pair[] = [];
  for (let place = 1; place < switches; place += 1) pairs.push([place < row ? place - 1 : place - row, place]);
  return made(`tree ${switches}`, switches, pairs);
}

export function leafSpine(leaves: number, spines: number): Topology {
  const pairs: Pair[] = [];
  for (let leaf = 0; leaf < leaves; leaf += 1)
    for (let spine = 0; spine < spines; spine += 1) pairs.push([leaf, leaves + spine]);
  return made(`leaf-spine ${leaves}+${spines}`, leaves + spines, pairs, (place) => place < leaves);
}

export function fatTree(arity: number): Topology {
  const half = arity / 2;
  const edges = arity * half;
  const pairs: Pair[] = [];
  for (let pod = 0; pod < arity; pod += 1) {
    for (let above = 0; above < half; above += 1) {
      const aggregation = edges + pod * half + above;
      for (let other = 0; other < half; other += 1)
        pairs.push([pod * half + other, aggregation], [aggregation, 2 * edges + other * half + above]);
    }
  }
  return made(`fat-tree ${arity}`, 2 * edges + half * half, pairs, (place) => place < edges);
}

export function dragonfly(groups: number, group: number, global: number): Topology {
  const pairs: Pair[] = [];
  for (let first = 0; first < groups * group; first += group) {
    for (let one = first; one < first + group; one += 1)
      for (let other = one + 1; other < first + group; other += 1) pairs.push([one, other]);
  }
  const links = Math.floor((group * global) / (groups - 1));
  const place = (here: number, there: number, link: number): number =>
    here * group + Math.floor(((((there + groups - here) % groups) - 1) * links + link) / global);
  for (let one = 0; one < groups; one += 1) {
    for (let other = one + 1; other < groups; other += 1)
      for (let link = 0; link < links; link += 1) pairs.push([place(one, other, link), place(other, one, link)]);
  }
  return made(`dragonfly ${groups}x${group} global ${global}`, groups * group, pairs);
}

/** Numbers from 0 to 1 that follow from a seed (a linear congruence modulo 2^32; Numerical Recipes, section 7.1). */
export function chance(seed: number): () => number {
  let state = (seed * 2_654_435_761) >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A connected graph of a random tree and further pairs, until there are half as many as `degree` for each switch. */
export function random(switches: number, degree: number, seed: number): Topology {
  const draw = chance(seed);
  const below = (limit: number): number => Math.floor(draw() * limit);
  const pairs: Pair[] = Array.from({ length: switches - 1 }, (_, at): Pair => [below(at + 1), at + 1]);
  const wanted = Math.min((switches * degree) / 2, (switches * (switches - 1)) / 2);
  const known = new Set(pairs.map(([one, other]) => `${one} ${other}`));
  while (known.size < wanted) {
    const [one, other] = [below(switches), below(switches)];
    if (one >= other || known.has(`${one} ${other}`)) continue;
    known.add(`${one} ${other}`);
    pairs.push([one, other]);
  }
  return made(`random ${switches} degree ${degree} seed ${seed}`, switches, pairs);
}

/** The same fabric with its switches numbered otherwise, as links that are listed one by one may number them. */
export function shuffled(of: Topology, seed: number): Topology {
  const draw = chance(seed);
  const order = Array.from({ length: of.switches }, (_, place) => ({ place, key: draw() })).sort(
    (one, other) => one.key - other.key,
  );
  const number = Array<number>(of.switches).fill(0);
  order.forEach(({ place }, at) => {
    number[place] = at;
  });
  const pairs = of.pairs.map(([one, other]): Pair => [number[one] ?? 0, number[other] ?? 0]);
  return made(
    `${of.name} in another order`,
    of.switches,
    pairs,
    (place) => of.withHosts[order[place]?.place ?? 0] === true,
  );
}

/** All families, from the smallest to 64 switches. */
export function families(): Topology[] {
  const sizes = [...Array.from({ length: 13 }, (_, at) => at + 4), 19, 23, 24, 25, 31, 32, 40, 47, 53, 60, 63, 64];
  const all = [
    mesh(2),
    mesh(3),
    ...sizes.flatMap((size) => [ring(size), complete(size), star(size), mesh(size), caterpillar(size)]),
    ...[
      [2, 2],
      [4, 2],
      [3, 3],
      [4, 4],
      [5, 3],
      [8, 4],
      [8, 8],
      [6, 9],
      [16, 4],
      [4, 16],
      [32, 2],
      [2, 32],
      [3, 3, 3],
      [4, 4, 4],
      [4, 3, 2],
      [2, 3, 5],
      [8, 2, 4],
      [2, 2, 2, 2],
      [3, 3, 2, 3],
      [4, 2, 2, 4],
      [2, 2, 2, 2, 2, 2],
    ].flatMap((of) => [mesh(...of), torus(...of)]),
    hyperx(4, 4),
    hyperx(8, 8),
    hyperx(3, 5),
    hyperx(4, 4, 4),
    tree(3, 4),
    tree(7, 8),
    tree(2, 2, 2, 2, 2),
    tree(1, 1, 6),
    tree(5),
    tree(60),
    leafSpine(2, 2),
    leafSpine(4, 2),
    leafSpine(16, 4),
    leafSpine(48, 16),
    leafSpine(4, 60),
    leafSpine(32, 32),
    fatTree(2),
    fatTree(4),
    fatTree(6),
    dragonfly(3, 2, 1),
    dragonfly(5, 4, 1),
    dragonfly(5, 4, 2),
    dragonfly(9, 4, 2),
    dragonfly(16, 4, 4),
    dragonfly(8, 8, 1),
    dragonfly(2, 8, 2),
    dragonfly(4, 16, 3),
    dragonfly(17, 3, 6),
  ];
  const seeds = Array.from({ length: 40 }, (_, seed) => random(5 + ((seed * 13) % 60), 2 + (seed % 9), seed + 1));
  return [
    ...all,
    ...seeds,
    ...[torus(4, 4), fatTree(4), tree(3, 4), mesh(8, 8), dragonfly(5, 4, 2), torus(4, 4, 4)].map((of, seed) =>
      shuffled(of, seed + 1),
    ),
  ];
}
