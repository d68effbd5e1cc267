//! Words that say little about what a document is about.

/// Frequent English function words, in lower case, ascending: articles, pronouns, prepositions, conjunctions, auxiliary
/// verbs, and what is left of their contractions after words are cut at apostrophes.
#[rustfmt::skip]
pub const ENGLISH: &[&str] = &[
    "about", "above", "after", "again", "against", "all", "also", "although", "am", "among", "an", "and", "another",
    "any", "anyone", "anything", "are", "aren", "around", "as", "at", "be", "because", "been", "before", "being",
    "below", "between", "both", "but", "by", "can", "cannot", "could", "couldn", "did", "didn", "do", "does", "doesn",
    "doing", "don", "done", "down", "during", "each", "either", "else", "ever", "every", "few", "for", "from",
    "further", "had", "hadn", "has", "hasn", "have", "haven", "having", "he", "hence", "her", "here", "hers", "herself",
    "him", "himself", "his", "how", "however", "if", "in", "into", "is", "isn", "it", "its", "itself", "just", "ll",
    "may", "me", "might", "mine", "more", "most", "much", "must", "mustn", "my", "myself", "neither", "no", "nor",
    "not", "now", "of", "off", "on", "once", "only", "onto", "or", "other", "others", "otherwise", "our", "ours",
    "ourselves", "out", "over", "own", "per", "rather", "re", "same", "shall", "shan", "she", "should", "shouldn",
    "since", "so", "some", "someone", "something", "such", "than", "that", "the", "their", "theirs", "them",
    "themselves", "then", "there", "therefore", "these", "they", "this", "those", "though", "through", "thus", "to",
    "too", "toward", "towards", "under", "until", "up", "upon", "us", "ve", "very", "was", "wasn", "we", "were",
    "weren", "what", "whatever", "when", "where", "whereas", "whether", "which", "while", "who", "whoever", "whole",
    "whom", "whose", "why", "will", "with", "within", "without", "won", "would", "wouldn", "yet", "you", "your",
    "yours", "yourself", "yourselves",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_ascend_in_lower_case_and_are_words() {
        assert!(ENGLISH.is_sorted_by(|a, b| a < b));
        assert!(ENGLISH.iter().all(|word| word.len() >= 2 && *word == word.to_lowercase()));
    }
}
