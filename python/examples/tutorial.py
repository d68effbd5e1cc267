"""A first tour of gradus in Python: run it, or paste it cell by cell into a notebook."""

# %% A model of features: the same words as in scikit-learn.
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gradus
from gradus.factor import Als, Bayes, Mean
from gradus.linear import Lasso, Logistic, Ridge

X, y = load_diabetes(return_X_y=True, as_frame=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# Without a penalty, ridge tries a hundred and takes the one with the smallest leave-one-out error.
ridge = Ridge().fit(X_train, y_train)
print(f"ridge: R² {ridge.score(X_test, y_test):.3f}, {ridge.report_.stop_reason}")

# Every fit says how far from the optimum it can be at most.
lasso = Lasso(regularization=1.0, tol=1e-8).fit(X_train, y_train)
print(f"lasso: {np.count_nonzero(lasso.coef_)} of {lasso.coef_.size} coefficients, certificate {lasso.report_.certificate}")

# %% Among scikit-learn's own tools.
high = np.where(y > y.median(), "high", "low")
pipe = make_pipeline(StandardScaler(), Logistic())
search = GridSearchCV(pipe, {"logistic__regularization": [1e-4, 1e-3, 1e-2]}, cv=5).fit(X, high)
print(f"logistic: accuracy {search.best_score_:.3f} with {search.best_params_}")

# %% A recommender: ratings as (users, items, values), ids of any type.
rng = np.random.default_rng(0)
n_users, n_items, n = 300, 100, 8_000
taste, kind = rng.normal(size=(n_users, 3)), rng.normal(size=(n_items, 3))
users, items = rng.integers(0, n_users, n), rng.integers(0, n_items, n)
stars = np.clip(np.round(3 + (taste[users] * kind[items]).sum(axis=1) / 2), 1, 5)
titles = np.array([f"film {item}" for item in range(n_items)])[items]

als = Als(rank=8, verbose=1).fit((users, titles, stars))
films, scores = als.recommend(7, n=3)
print(f"recommend to user 7: {', '.join(films)}")
why = als.explain(7, films[0])
film, rating, part = why["contributions"][0]
print(f"because they gave {film} {rating:.0f} stars, which adds {part:+.2f}")

pairs = np.column_stack([users, items])
for model in (Mean(), Als(rank=8), Bayes(rank=8, max_iter=60, burn_in=20)):
    scores = cross_val_score(model, pairs, stars, cv=3)
    print(f"{type(model).__name__}: R² {scores.mean():.3f}")

# %% New ratings without a new fit, and the file that Rust and the command line open too.
als.partial_fit(([n_users, n_users], ["film 3", "film 5"], [5.0, 1.0]))
print(f"recommend to the new user: {als.recommend(n_users, n=1)[0][0]}")
als.save("films.gradus")
print(gradus.load("films.gradus"))

# %% How the fit went: a picture, and a page of its own.
als.report_.plot().figure.savefig("fit.png")
with open("report.html", "w", encoding="utf-8") as file:
    file.write(als.report_.to_html("Films"))
