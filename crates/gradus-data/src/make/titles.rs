//! Film titles, composed from the words of a genre.

use gradus_base::random::Stream;
use std::collections::HashSet;
use std::fmt::Write as _;

/// The words of one genre.
struct Genre {
    name: &'static str,
    adjectives: [&'static str; 18],
    nouns: [&'static str; 22],
    places: [&'static str; 14],
}

/// How many genres there are words for.
pub(super) const N_GENRES: usize = GENRES.len();

/// The name of planted genre `index`, such as `"Western"`; `"Genre 12"` beyond the named ones.
pub fn genre_name(index: usize) -> String {
    GENRES.get(index).map_or_else(|| format!("Genre {index}"), |genre| genre.name.to_owned())
}

/// A title for each genre in `genres`, no two alike.
pub(super) fn titles(genres: &[u32], seed: u64) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::with_capacity(genres.len());
    let mut titles = Vec::with_capacity(genres.len());
    for (item, &genre) in genres.iter().enumerate() {
        let mut stream = Stream::new(seed, "make ratings: title", item as u64);
        let (mut name, year) = compose(&GENRES[genre as usize % N_GENRES], &mut stream);
        let mut title = format!("{name} ({year})");
        let mut part = 1;
        let bare = name.len();
        while taken.contains(&title) {
            part += 1;
            name.truncate(bare);
            write!(name, " {}", roman(part)).expect("writing to a string");
            title = format!("{name} ({year})");
        }
        taken.insert(title.clone());
        titles.push(title);
    }
    titles
}

/// A name and a year; recent years are more frequent, as in any catalogue.
fn compose(genre: &Genre, stream: &mut Stream) -> (String, u32) {
    let mut pick = |words: &[&'static str]| words[stream.index(words.len())];
    let (adjective, other) = (pick(&genre.adjectives), pick(&genre.adjectives));
    let (noun, second) = (pick(&genre.nouns), pick(&genre.nouns));
    let place = pick(&genre.places);
    let name = match stream.index(12) {
        0..=2 => format!("The {adjective} {noun}"),
        3 => format!("{adjective} {noun}"),
        4 | 5 => format!("The {noun} of {place}"),
        6 => format!("{noun} in {place}"),
        7 if noun != second => format!("The {noun} and the {second}"),
        8 if adjective != other => format!("{adjective}, {other}"),
        9 => format!("The {adjective} {noun} of {place}"),
        10 => format!("Return to {place}"),
        11 if noun.starts_with(['A', 'E', 'I', 'O', 'U']) && noun != "Unicorn" => {
            format!("An {noun} for {place}")
        }
        11 => format!("A {noun} for {place}"),
        _ => format!("The Last {noun}"),
    };
    let age = stream.uniform() * stream.uniform();
    (name, 2024 - (age * 94.0) as u32)
}

fn roman(mut number: u32) -> String {
    const DIGITS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut text = String::new();
    for (value, digit) in DIGITS {
        while number >= value {
            text.push_str(digit);
            number -= value;
        }
    }
    text
}

#[rustfmt::skip]
const GENRES: [Genre; 12] = [
    Genre { name: "Drama",
        adjectives: ["Silent", "Quiet", "Broken", "Distant", "Fragile", "Bitter", "Unspoken", "Faded", "Ordinary", "Borrowed", "Tender", "Weary", "Hollow", "Forgiven", "Patient", "Late", "Solitary", "Honest"],
        nouns: ["Harbour", "Letter", "Winter", "Daughter", "Orchard", "Silence", "Father", "Kitchen", "Promise", "Widow", "Garden", "Inheritance", "Teacher", "Window", "Season", "Lighthouse", "Photograph", "Neighbour", "Piano", "Brother", "Afternoon", "Mother"],
        places: ["Elm Street", "Dunmore", "the North Shore", "Saint-Malo", "Ashford", "the Valley", "Lisbon", "Marrow Lane", "Trieste", "Our Town", "the Old House", "Galway", "Lake Ondine", "Providence"] },
    Genre { name: "Comedy",
        adjectives: ["Crazy", "Clumsy", "Awkward", "Ridiculous", "Lazy", "Hopeless", "Cheerful", "Accidental", "Terrible", "Perfect", "Uninvited", "Fabulous", "Grumpy", "Overdue", "Improbable", "Hungry", "Dizzy", "Unlikely"],
        nouns: ["Wedding", "Roommate", "Uncle", "Vacation", "Dentist", "Butler", "Divorce", "Plumber", "Parrot", "Reunion", "Landlord", "Mattress", "Honeymoon", "Intern", "Goldfish", "Babysitter", "Toaster", "Barbecue", "Mother-in-Law", "Salesman", "Picnic", "Weekend"],
        places: ["Miami", "the Suburbs", "Aisle Five", "New Jersey", "the Office", "Lower Bogwick", "Las Vegas", "the Country Club", "Apartment 3B", "Nowhere Special", "Brighton", "the Wrong Hotel", "Poughkeepsie", "Sunday Lunch"] },
    Genre { name: "Horror",
        adjectives: ["Bleeding", "Haunted", "Cursed", "Rotting", "Unholy", "Screaming", "Nameless", "Pale", "Buried", "Hungering", "Forsaken", "Crawling", "Flayed", "Whispering", "Undead", "Ravenous", "Grim", "Eyeless"],
        nouns: ["Crypt", "Nightmare", "Coven", "Cellar", "Corpse", "Possession", "Scarecrow", "Shadow", "Grave", "Demon", "Asylum", "Ritual", "Slaughter", "Doll", "Hollow", "Séance", "Fang", "Attic", "Scream", "Exorcism", "Witch", "Tomb"],
        places: ["Black Hollow", "Ravenmoor", "Hell", "the Cellar", "Camp Dread", "Grimwood", "the Thirteenth Floor", "Salem", "Carrion Hill", "the Dead Woods", "Blackwater Asylum", "Midnight", "the Abattoir", "Crow Lake"] },
    Genre { name: "Science Fiction",
        adjectives: ["Orbital", "Quantum", "Binary", "Synthetic", "Stellar", "Lunar", "Infinite", "Parallel", "Cryogenic", "Galactic", "Android", "Electric", "Martian", "Neutron", "Artificial", "Cosmic", "Zero-Gravity", "Alien"],
        nouns: ["Android", "Colony", "Signal", "Paradox", "Starship", "Nebula", "Protocol", "Eclipse", "Machine", "Horizon", "Clone", "Wormhole", "Reactor", "Satellite", "Singularity", "Voyager", "Cyborg", "Asteroid", "Simulation", "Cosmonaut", "Transmission", "Engine"],
        places: ["Europa", "Andromeda", "Mars", "Sector Nine", "Titan", "Kepler Station", "Tomorrow", "Proxima", "the Outer Rim", "New Luna", "Deep Space", "Orion", "Year Zero", "the Dead Planet"] },
    Genre { name: "Western",
        adjectives: ["Dusty", "Lonesome", "Outlawed", "Six-Gun", "Sunburnt", "Wanted", "Lawless", "Rawhide", "Crooked", "Galloping", "Iron", "Drifting", "Rusted", "Fearless", "Whiskey", "Bandit", "Prairie", "Hard-Riding"],
        nouns: ["Sheriff", "Stagecoach", "Gunslinger", "Saloon", "Stranger", "Marshal", "Posse", "Mustang", "Outlaw", "Canyon", "Bounty", "Rifle", "Cattleman", "Showdown", "Homestead", "Deputy", "Prospector", "Noose", "Rider", "Spur", "Trail", "Undertaker"],
        places: ["Abilene", "Dry Gulch", "El Paso", "Tombstone Ridge", "Laredo", "the Badlands", "Cheyenne", "Red Mesa", "Dodge", "the Rio Bravo", "Silver Creek", "Sonora", "Coyote Pass", "Durango"] },
    Genre { name: "Romance",
        adjectives: ["Secret", "Beloved", "Moonlit", "Enchanted", "Sweet", "Stolen", "Endless", "Velvet", "Summer", "Blushing", "Faithful", "Parisian", "Second", "Dancing", "Starry", "Tangled", "Rosy", "Unexpected"],
        nouns: ["Kiss", "Love", "Rose", "Heart", "Valentine", "Waltz", "Sweetheart", "Embrace", "Bride", "Affair", "Proposal", "Serenade", "Bouquet", "Honeymoon", "Darling", "Suitor", "Romance", "Ring", "Lover", "Moonlight", "Dance", "Confession"],
        places: ["Paris", "Venice", "Verona", "Santorini", "Central Park", "the Riviera", "Vienna", "Tuscany", "Springtime", "Lovers' Lane", "Capri", "Monterey", "Seville", "Cherry Blossom Hill"] },
    Genre { name: "Thriller",
        adjectives: ["Double", "Vanishing", "Deadly", "Covert", "Hidden", "Ruthless", "Missing", "Final", "Encrypted", "Guilty", "Fatal", "Anonymous", "Ticking", "Cold", "Hunted", "Blind", "Paranoid", "Locked"],
        nouns: ["Witness", "Alibi", "Conspiracy", "Hostage", "Informant", "Deception", "Cipher", "Verdict", "Passenger", "Assassin", "Ransom", "Pursuit", "Target", "Motive", "Blackmail", "Suspect", "Fugitive", "Dossier", "Agent", "Countdown", "Betrayal", "Evidence"],
        places: ["Berlin", "Room 217", "the Embassy", "Moscow", "Terminal 4", "Zurich", "Pier 39", "Istanbul", "the Safe House", "Hong Kong", "Checkpoint Nine", "the Night Train", "Washington", "Langley"] },
    Genre { name: "Adventure",
        adjectives: ["Lost", "Golden", "Daring", "Uncharted", "Emerald", "Fearless", "Perilous", "Legendary", "Sunken", "Forbidden", "Savage", "Swift", "Ancient", "Jungle", "Jade", "Mighty", "Reckless", "Wild"],
        nouns: ["Treasure", "Expedition", "Temple", "Idol", "Pirate", "Compass", "Voyage", "Explorer", "Map", "Island", "Caravan", "Quest", "Galleon", "Ruby", "Jungle", "Cutlass", "Volcano", "Kingdom", "Buccaneer", "Shipwreck", "Summit", "Safari"],
        places: ["Zanzibar", "the Amazon", "El Dorado", "the Seven Seas", "Kathmandu", "Skull Island", "the Nile", "Tortuga", "Shangri-La", "the Sahara", "Atlantis", "Borneo", "Cape Horn", "Samarkand"] },
    Genre { name: "Animation",
        adjectives: ["Little", "Magic", "Brave", "Purple", "Bouncy", "Sleepy", "Curious", "Sparkling", "Giggling", "Tiny", "Fluffy", "Flying", "Singing", "Merry", "Wobbly", "Polka-Dot", "Enormous", "Sugar"],
        nouns: ["Dragon", "Puppy", "Princess", "Teddy Bear", "Unicorn", "Hedgehog", "Balloon", "Penguin", "Toymaker", "Fairy", "Elephant", "Robot", "Kitten", "Mermaid", "Wizard", "Squirrel", "Rainbow", "Gnome", "Bunny", "Otter", "Snowman", "Caterpillar"],
        places: ["Toyland", "Candy Mountain", "the Enchanted Forest", "Cloud Castle", "Bubble Bay", "Acorn Wood", "the North Pole", "Rainbow Falls", "Pumpkin Patch", "the Moon", "Marshmallow Island", "Dreamland", "Honeypot Hill", "Snowflake Valley"] },
    Genre { name: "War",
        adjectives: ["Fallen", "Burning", "Valiant", "Iron", "Bloody", "Armoured", "Unknown", "Besieged", "Wounded", "Steel", "Marching", "Scorched", "Captured", "Forward", "Embattled", "Loyal", "Shattered", "Unbroken"],
        nouns: ["Battalion", "Trench", "Brigade", "Soldier", "Convoy", "Regiment", "Siege", "Bomber", "Armistice", "Sergeant", "Submarine", "Front", "Sniper", "Command", "Barricade", "Prisoner", "Offensive", "Bugle", "Squadron", "Bunker", "Ambush", "Medic"],
        places: ["Verdun", "Dunkirk", "the Ardennes", "Stalingrad", "Hill 60", "Normandy", "Gallipoli", "the Eastern Front", "Tobruk", "Monte Cassino", "the Somme", "Saigon", "Arnhem", "No Man's Land"] },
    Genre { name: "Mystery",
        adjectives: ["Crimson", "Curious", "Missing", "Poisoned", "Locked", "Invisible", "Scarlet", "Midnight", "Silver", "Cryptic", "Masked", "Unsolved", "Ivory", "Peculiar", "Velvet", "Thirteenth", "Forged", "Secret"],
        nouns: ["Detective", "Clue", "Riddle", "Murder", "Candlestick", "Inspector", "Manor", "Enigma", "Dagger", "Poison", "Cabinet", "Puzzle", "Footprint", "Butler", "Secret", "Library", "Keyhole", "Inquest", "Case", "Will", "Clock", "Necklace"],
        places: ["Thornfield Manor", "Baker Street", "the Orient", "Whitechapel", "Chesterton Hall", "the Vicarage", "Room Nine", "Foxglove Abbey", "the Foggy Moor", "Highgate", "the Grand Hotel", "Oxford", "Wexley Court", "the Blue Library"] },
    Genre { name: "Documentary",
        adjectives: ["Untold", "Vanishing", "Inside", "Rising", "Melting", "Human", "Living", "Frozen", "Hidden", "Real", "Wild", "Invisible", "Changing", "Deep", "True", "Future", "Forgotten", "Common"],
        nouns: ["Planet", "Ocean", "Glacier", "Story", "Archive", "Century", "Witnesses", "Rivers", "Harvest", "Climate", "Forests", "Factory", "Portrait", "Migration", "Coral", "Voices", "Economy", "Orchestra", "Bees", "Revolution", "Workers", "Whales"],
        places: ["the Arctic", "Our Time", "Patagonia", "the Deep", "Detroit", "the Serengeti", "the Himalayas", "Kyoto", "the Amazon Basin", "Modern Life", "Lagos", "Greenland", "the Steppe", "the Twentieth Century"] },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_unique_and_the_same_every_time() {
        // 200,000 of one genre is far past what its words can tell apart: sequels must appear.
        let genres = vec![4; 200_000];
        let made = titles(&genres, 1);
        assert_eq!(made.iter().collect::<HashSet<_>>().len(), made.len());
        assert!(made.iter().any(|title| title.contains(" II (")));
        assert_eq!(titles(&genres[..100], 1), made[..100]);
        assert_ne!(titles(&genres[..100], 2), made[..100]);
        for title in &made {
            let year = &title[title.len() - 5..title.len() - 1];
            assert!((1930..=2024).contains(&year.parse::<u32>().unwrap()), "{title}");
        }
        assert_eq!(roman(1994), "MCMXCIV");
    }

    #[test]
    fn no_title_needs_quoting_rules_beyond_the_comma() {
        for title in titles(&(0..5000).map(|item| item % 12).collect::<Vec<_>>(), 3) {
            assert!(!title.contains(['"', '\n', '\t', ';', ':']), "{title}");
        }
    }
}
